//===- ReadTorchCsv.h - schedules from PyTorch's action grammar -------------===//
//
// A file in PyTorch's action grammar has one line per rank and one cell per action.
// It says what each rank does and in which order; which pipelines there are, and
// where their stages stand, is inferred.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TARGET_READTORCHCSV_H
#define DUALPIPE_TARGET_READTORCHCSV_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dualpipe {

/// What the letter B means. `Legacy` (files from about 2024) writes B for the input
/// half and BW for the full backward; `Current` writes I and B.
enum class TorchDialect : uint8_t { Auto, Current, Legacy };

/// Ranges of stages, first and last, that hold the same weights.
using SharedStages = std::vector<std::pair<uint32_t, uint32_t>>;

/// Reads "0-3,4-7": stages 4 to 7 hold the weights of stages 0 to 3, and have
/// micro-batches of their own. Fails where the ranges differ in length or overlap.
Result<SharedStages> parseSharedStages(std::string_view text);

struct TorchReadOptions {
  TorchDialect dialect = TorchDialect::Auto;
  std::vector<SharedStages> shared;
  /// The name of the schedule.
  std::string name = "schedule";
  /// The name of the file, for places.
  std::string file;
};

/// Fills `schedule` from the text of a file. Sends and receives, where there are any,
/// are kept: the schedule places its transfers itself. What was inferred or left out
/// goes to `sink` as remarks and warnings, what is wrong as errors (a bounded number)
/// with rank, column (the number of the cell, from 1) and cell. The order itself is not
/// checked: that is the work of `checkSchedule`.
/// \returns whether there was no error; `schedule` is as it was otherwise.
[[nodiscard]] bool readTorchCsv(std::string_view text, const TorchReadOptions &options,
                                Schedule &schedule, DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_TARGET_READTORCHCSV_H
