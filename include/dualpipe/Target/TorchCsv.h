//===- TorchCsv.h - schedules in PyTorch's action grammar -------------------===//

#ifndef DUALPIPE_TARGET_TORCHCSV_H
#define DUALPIPE_TARGET_TORCHCSV_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Schedule/Timeline.h"
#include "dualpipe/Support/Diagnostics.h"

#include <string>

namespace dualpipe {

struct TorchWriteOptions {
  /// The older dialect: B for the input half, BW for the full backward, and no
  /// REDUCE_GRAD.
  bool legacy = false;
};

/// The compute ops of every rank, one rank a line, as PyTorch's pipeline
/// schedule runtime reads them (`compute_only`): `0F1`, `3I5`, `3W5`, `2B0`,
/// `(0F7;7B3)OVERLAP_F_B`.
std::string printTorchCsv(const Schedule &schedule, const TorchWriteOptions &options = {});

/// The same with every send and receive where the timeline has it (`compute_comms`):
/// `0SEND_F1`, `1RECV_F1`, `1SEND_B1`, `0RECV_B1`. PyTorch adds nothing to such a file, so
/// it also says REDUCE_GRAD where the gradients of a stage are complete on the rank.
std::string printTorchCsvComms(const Timeline &timeline, const TorchWriteOptions &options = {});

/// Warns of what keeps PyTorch from running a schedule that is written for it.
void warnWhatTorchCannotRun(const Schedule &schedule, DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_TARGET_TORCHCSV_H
