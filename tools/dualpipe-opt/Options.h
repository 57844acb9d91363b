//===- Options.h - the command line of dualpipe-opt -------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_OPTIONS_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_OPTIONS_H

#include "Input.h"

#include "dualpipe/Frontend/Frontend.h"
#include "dualpipe/Runtime/Pictures.h"
#include "dualpipe/Runtime/Profile.h"
#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Target/ReadTorchCsv.h"
#include "dualpipe/Target/TorchCsv.h"

#include <optional>
#include <string>
#include <vector>

namespace dualpipe::opt {

/// What to write. The order is that of the levels, from text to program.
enum class Emit {
  Default, ///< from the ending of the output; MLIR of the order phase where that says nothing
  Ast,
  Order,
  Pipe,
  TorchCsv,
  TorchCsvComms,
  Dataflow,
  Streams,
  Program,
  Report,
  Svg,
  Html,
  Trace,
  Cuda, ///< a folder
};

/// How a report is written.
enum class ReportFormat { Text, Json };

struct DriverOptions {
  std::string input, output;
  /// Known once the input is open.
  InputKind inputKind = InputKind::Module;
  /// What to compare the input with; empty where nothing is compared.
  std::string diff;
  /// Known once that is open.
  InputKind diffKind = InputKind::Module;
  /// What to compare with the input in one table of predictions, in order.
  bool compares = false;
  std::vector<std::string> compared;
  Emit emit = Emit::Default;
  frontend::Options schedule;
  std::optional<uint32_t> onlyRank;
  /// Slots beyond the peak for each channel.
  uint32_t spares = 0;
  /// Lay out the input instead of compiling it.
  bool formatPipe = false;
  /// Check a program and say what holds, instead of compiling.
  bool verify = false;
  /// D3 by folded queues instead of the one-queue rule; 0 for a queue per stream.
  std::optional<uint32_t> hardwareQueues;
  /// The most transfers of a group (P5); larger ones are split where it is given.
  std::optional<uint32_t> groupLimit;
  /// How a schedule in PyTorch's grammar is read and written.
  TorchReadOptions torch;
  TorchWriteOptions torchOutput;

  /// What the ops cost in a prediction, as given; over the planning costs.
  runtime::CostOption predictionCosts;
  ReportFormat reportFormat = ReportFormat::Text;
  runtime::Theme theme = runtime::Theme::Auto;

  bool isDiff() const { return !diff.empty(); }
  bool outputIsStdout() const { return output == "-"; }
};

/// What is to be set before the command line is parsed: the version, and a help
/// text without the options of LLVM's code generators (`--help-hidden` has them).
void prepareCommandLine();

/// Reads what the command line gave, after LLVM has parsed it. Fails with a
/// message for the user.
Result<DriverOptions> readOptions(std::string input, std::string output);

/// Fails where what is asked for means nothing for the kind of the input; where two inputs are
/// compared, for the kind of either.
Status checkOptionsApply(const DriverOptions &options);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_OPTIONS_H
