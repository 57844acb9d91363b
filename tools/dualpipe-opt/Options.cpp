//===- Options.cpp - the command line of dualpipe-opt -----------------------===//

#include "Options.h"

#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
namespace cl = llvm::cl;

static cl::OptionCategory category("Schedule options",
                                   "What to compile from a schedule, and how far.");

static cl::opt<std::string> ranksFlag("ranks", cl::cat(category), cl::value_desc("N"),
                                      cl::desc("Number of ranks"));
static cl::opt<std::string> microbatchesFlag("microbatches", cl::cat(category), cl::value_desc("M"),
                                             cl::desc("Number of micro-batches"));
static cl::list<std::string> paramFlag("param", cl::cat(category), cl::value_desc("NAME=VALUE"),
                                       cl::desc("A further parameter of the schedule"));
static cl::opt<std::string> scheduleFlag("schedule", cl::cat(category), cl::value_desc("NAME"),
                                         cl::desc("Which schedule of the file"));
static cl::opt<TorchDialect> dialectFlag(
    "csv-dialect", cl::cat(category), cl::init(TorchDialect::Auto),
    cl::desc("What B means in the .csv file that is read"),
    cl::values(clEnumValN(TorchDialect::Auto, "auto", "legacy where the file has a BW"),
               clEnumValN(TorchDialect::Current, "current",
                          "the full backward; I is the input half"),
               clEnumValN(TorchDialect::Legacy, "legacy",
                          "the input half, as in files of about 2024; BW is the full backward")));
static cl::opt<bool> legacyOutputFlag("legacy-csv", cl::cat(category),
                                      cl::desc("Write the older dialect: B for the input half, BW "
                                               "for the full backward"));
static cl::list<std::string>
    shareFlag("share", cl::cat(category), cl::value_desc("0-3,4-7"),
              cl::desc("Ranges of stages in a .csv file that hold the same weights"));
static cl::opt<std::string> diffFlag("diff", cl::cat(category), cl::value_desc("OTHER"),
                                     cl::desc("Compare the schedule with another one: "
                                              "--diff A B, any of .pipe, .csv, .dpx"));
static cl::opt<bool> forwardOnlyFlag("forward-only", cl::cat(category),
                                     cl::desc("Drop the backward: inference"));
static cl::opt<std::string> onlyRankFlag("only-rank", cl::cat(category), cl::value_desc("R"),
                                         cl::desc("Write the program of one rank only"));
static cl::opt<std::string>
    planCostFlag("plan-cost", cl::cat(category), cl::value_desc("fwd=1,bwd=2,..."),
                 cl::desc("Times to plan with: fwd, bwd, bwd_input, bwd_weight, fused, transfer"));
static cl::opt<std::string> sparesFlag(
    "spares", cl::cat(category), cl::value_desc("N"),
    cl::desc("Slots beyond the peak for each channel (default 1); 0 saves memory and may "
             "cost time"));
static cl::opt<Emit> emitFlag(
    "emit", cl::cat(category), cl::desc("What to write; clear from the ending .dpx or .csv"),
    cl::init(Emit::Default),
    cl::values(clEnumValN(Emit::Ast, "ast", "syntax tree of the .pipe file"),
               clEnumValN(Emit::Order, "order", "pipe dialect: ops and transfers in order"),
               clEnumValN(Emit::Pipe, "pipe", "an explicit .pipe program, op by op"),
               clEnumValN(Emit::TorchCsv, "torch-csv", "compute order in PyTorch's action grammar"),
               clEnumValN(Emit::TorchCsvComms, "torch-csv-comms",
                          "the same with sends and receives"),
               clEnumValN(Emit::Dataflow, "dataflow", "pipe dialect: with values"),
               clEnumValN(Emit::Streams, "streams", "stream dialect"),
               clEnumValN(Emit::Program, "program", "program file (binary)")));

static cl::opt<bool>
    formatPipeFlag("format-pipe", cl::cat(category),
                   cl::desc("Lay out the .pipe file; -o may name the input itself"));

void opt::prepareCommandLine() {
  cl::HideUnrelatedOptions(category);
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "dualpipe-opt " DUALPIPE_VERSION "\n"; });
}

/// A number of an option, or the complaint. Nothing where the option is not given.
static Status readNumber(const cl::opt<std::string> &option, std::optional<uint32_t> &number,
                         uint32_t least, std::optional<uint32_t> most = std::nullopt) {
  if (option.getNumOccurrences() == 0)
    return Status::success();
  uint32_t value = 0;
  const std::string &text = option;
  if (!llvm::StringRef(text).getAsInteger(10, value) && value >= least &&
      (!most || value <= *most)) {
    number = value;
    return Status::success();
  }
  return Status::failure(fmt::format("--{} is '{}', expected a whole number from {} {}",
                                     option.ArgStr.str(), text, least,
                                     most ? fmt::format("to {}", *most) : "on"));
}

/// Whether two inputs are compared, or one is compiled, an option must mean something for
/// the kind of one of them.
static Status rejectOptions(const DriverOptions &options,
                            std::initializer_list<const cl::Option *> unused) {
  for (const cl::Option *option : unused)
    if (option->getNumOccurrences() != 0)
      return Status::failure(fmt::format("--{} does not apply: '{}' is {}", option->ArgStr.str(),
                                         options.input, describe(options.inputKind)));
  return Status::success();
}

/// The options that say how to compile mean nothing for an input that is compiled.
static Status checkOptionsOfKind(const DriverOptions &options) {
  const cl::Option *params = std::addressof(paramFlag), *share = std::addressof(shareFlag);
  switch (options.inputKind) {
  case InputKind::Schedule:
    return rejectOptions(options, {&dialectFlag, share});
  case InputKind::Csv:
    return rejectOptions(options, {params, &scheduleFlag});
  case InputKind::Program:
    return rejectOptions(options,
                         {&ranksFlag, &microbatchesFlag, params, &scheduleFlag, &forwardOnlyFlag,
                          &onlyRankFlag, &planCostFlag, &sparesFlag, &dialectFlag, share});
  case InputKind::Module:
    return rejectOptions(options,
                         {&ranksFlag, &microbatchesFlag, params, &scheduleFlag, &forwardOnlyFlag,
                          &onlyRankFlag, &planCostFlag, &dialectFlag, share});
  }
  return Status::success();
}

/// What of `--emit` starts from the kind of the input.
static Status checkLevel(const DriverOptions &options) {
  bool isCsv = options.emit == Emit::TorchCsv || options.emit == Emit::TorchCsvComms;
  if (legacyOutputFlag.getNumOccurrences() != 0 && !isCsv)
    return Status::failure("--legacy-csv does not apply without --emit=torch-csv or "
                           "torch-csv-comms, or an output .csv");
  bool fromSchedule = options.emit == Emit::Order || options.emit == Emit::Pipe || isCsv;
  if (options.inputKind == InputKind::Module && fromSchedule)
    return Status::failure(fmt::format("'{}' is an MLIR module: this level of --emit starts from a "
                                       "schedule",
                                       options.input));
  if (options.inputKind != InputKind::Schedule && options.emit == Emit::Ast)
    return Status::failure(fmt::format("'{}' is {}: this level of --emit starts from a .pipe file",
                                       options.input, describe(options.inputKind)));
  bool isCompiled = options.emit == Emit::Order || options.emit == Emit::Dataflow ||
                    options.emit == Emit::Program;
  if (options.inputKind == InputKind::Program && isCompiled)
    return Status::failure(fmt::format("'{}' is a compiled program: expected --emit=streams, "
                                       "pipe, torch-csv or torch-csv-comms",
                                       options.input));
  return Status::success();
}

Status opt::checkOptionsApply(const DriverOptions &options) {
  if (options.isDiff())
    return Status::success();
  if (Status status = checkOptionsOfKind(options); !status)
    return status;
  if (options.inputKind == InputKind::Module && options.emit == Emit::Default &&
      sparesFlag.getNumOccurrences() != 0)
    return Status::failure("--spares does not apply without --emit or an output .dpx: give it to "
                           "the pass, --pipe-assign-slots=spares=N");
  return checkLevel(options);
}

/// Options of the output, where two inputs are compared.
static Status checkOptionsOfDiff() {
  const cl::Option *ofOutput[] = {&emitFlag, &onlyRankFlag, &sparesFlag, &legacyOutputFlag};
  for (const cl::Option *option : ofOutput)
    if (option->getNumOccurrences() != 0)
      return Status::failure(fmt::format("--{} does not apply with --diff", option->ArgStr.str()));
  return Status::success();
}

static Status readShares(TorchReadOptions &options) {
  for (const std::string &text : shareFlag) {
    Result<SharedStages> ranges = parseSharedStages(text);
    if (!ranges)
      return Status::failure("--share is " + ranges.message());
    options.shared.push_back(*ranges);
  }
  return Status::success();
}

/// The formatter reads a text and writes a text; nothing else about it can be chosen.
static Status checkOptionsOfFormatter() {
  const cl::Option *ofCompiler[] = {&ranksFlag,    &microbatchesFlag, std::addressof(paramFlag),
                                    &scheduleFlag, &forwardOnlyFlag,  &onlyRankFlag,
                                    &planCostFlag, &sparesFlag,       &emitFlag,
                                    &dialectFlag,  &legacyOutputFlag, std::addressof(shareFlag),
                                    &diffFlag};
  for (const cl::Option *option : ofCompiler)
    if (option->getNumOccurrences() != 0)
      return Status::failure(
          fmt::format("--{} does not apply with --format-pipe", option->ArgStr.str()));
  return Status::success();
}

static Status readParams(frontend::Options &options) {
  for (llvm::StringRef text : paramFlag) {
    auto [name, value] = text.split('=');
    int64_t number = 0;
    bool isBoolean = value == "true" || value == "false";
    if (name.empty() || (!isBoolean && value.getAsInteger(10, number)))
      return Status::failure(fmt::format(
          "--param is '{}', expected NAME=VALUE with a whole number, true or false", text.str()));
    if (isBoolean)
      options.params.emplace_back(name.str(), value == "true");
    else
      options.params.emplace_back(name.str(), number);
  }
  return Status::success();
}

static Emit emitFromEnding(llvm::StringRef output) {
  if (output.ends_with(".dpx"))
    return Emit::Program;
  if (output.ends_with(".csv"))
    return Emit::TorchCsv;
  return Emit::Default;
}

Result<DriverOptions> opt::readOptions(std::string input, std::string output) {
  DriverOptions options;
  options.input = std::move(input);
  options.output = std::move(output);
  options.formatPipe = formatPipeFlag;
  if (options.formatPipe) {
    if (Status status = checkOptionsOfFormatter(); !status)
      return status;
    return options;
  }
  if (llvm::sys::fs::equivalent(options.input, options.output))
    return Status::failure(fmt::format("the output '{}' is the input", options.output));
  options.emit = emitFlag == Emit::Default ? emitFromEnding(options.output) : emitFlag;
  options.schedule.schedule = scheduleFlag;
  options.schedule.forwardOnly = forwardOnlyFlag;

  options.diff = diffFlag;
  options.torch.dialect = dialectFlag;
  options.torchOutput.legacy = legacyOutputFlag;
  if (diffFlag.getNumOccurrences() != 0 && options.diff.empty())
    return Status::failure("--diff names no input to compare with: --diff A B");
  if (options.isDiff() && options.diff == "-" && options.input == "-")
    return Status::failure("--diff reads the standard input once: name one of the two inputs");
  if (Status status = options.isDiff() ? checkOptionsOfDiff() : Status::success(); !status)
    return status;
  if (Status status = readShares(options.torch); !status)
    return status;
  if (Status status = readNumber(ranksFlag, options.schedule.ranks, 1); !status)
    return status;
  if (Status status = readNumber(microbatchesFlag, options.schedule.microbatches, 1); !status)
    return status;
  if (Status status = readNumber(onlyRankFlag, options.onlyRank, 0); !status)
    return status;
  std::optional<uint32_t> spares;
  if (Status status = readNumber(sparesFlag, spares, 0, kMaxSpares); !status)
    return status;
  options.spares = spares.value_or(kDefaultSpares);
  if (Status status = readParams(options.schedule); !status)
    return status;

  Result<Costs> costs = Costs::parse(planCostFlag);
  if (!costs)
    return Status::failure("--plan-cost: " + costs.message());
  options.schedule.planCosts = *costs;
  if (options.emit == Emit::Program && options.outputIsStdout())
    return Status::failure("a program file is binary: name it with -o FILE.dpx");
  return options;
}
