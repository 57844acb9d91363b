//===- TorchCsv.h - schedules in PyTorch's action grammar -------------------===//

#ifndef DUALPIPE_TARGET_TORCHCSV_H
#define DUALPIPE_TARGET_TORCHCSV_H

#include "dualpipe/Schedule/Schedule.h"

#include <string>

namespace dualpipe {

/// The compute ops of every rank, one rank a line, as PyTorch's pipeline
/// schedule runtime reads them (`compute_only`): `0F1`, `3I5`, `3W5`, `2B0`,
/// `(0F7;7B3)OVERLAP_F_B`.
std::string printTorchCsv(const Schedule &schedule);

} // namespace dualpipe

#endif // DUALPIPE_TARGET_TORCHCSV_H
