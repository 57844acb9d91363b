//===- Options.cpp - the command line of dualpipe-opt -----------------------===//

#include "Options.h"
#include "WritePicture.h"

#include "dualpipe/Runtime/CostFile.h"
#include "dualpipe/Runtime/Simulation.h"
#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
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
    "emit", cl::cat(category),
    cl::desc("What to write; clear from the ending .dpx, .csv, .svg or .html"),
    cl::init(Emit::Default),
    cl::values(
        clEnumValN(Emit::Ast, "ast", "syntax tree of the .pipe file"),
        clEnumValN(Emit::Order, "order", "pipe dialect: ops and transfers in order"),
        clEnumValN(Emit::Pipe, "pipe", "an explicit .pipe program, op by op"),
        clEnumValN(Emit::TorchCsv, "torch-csv", "compute order in PyTorch's action grammar"),
        clEnumValN(Emit::TorchCsvComms, "torch-csv-comms", "the same with sends and receives"),
        clEnumValN(Emit::Dataflow, "dataflow", "pipe dialect: with values"),
        clEnumValN(Emit::Streams, "streams", "stream dialect"),
        clEnumValN(Emit::Program, "program", "program file (binary)"),
        clEnumValN(Emit::Report, "report",
                   "time, bubble, memory and waits that the program will have"),
        clEnumValN(Emit::Svg, "svg", "a Gantt chart: when each rank will run what"),
        clEnumValN(Emit::Html, "html", "a page to explore it: zoom, causes, memory, other costs"),
        clEnumValN(Emit::Trace, "trace", "what each stream will do when, for ui.perfetto.dev"),
        clEnumValN(Emit::Cuda, "cuda",
                   "a folder: the step of each rank as CUDA C++, for launcher --step")));
static cl::opt<std::string>
    costFlag("cost", cl::cat(category), cl::value_desc("[FILE.json,]fwd=1,bwd=2,..."),
             cl::desc("Times to predict with, instead of those planned with: a profile of "
                      "launcher --profile, what --plan-cost takes, or both; also load_input, "
                      "load_labels, reduce, step, forward_done, backward_done, "
                      "start=joint|separate, occupancy, bandwidth, bytes, reduce_bytes, "
                      "links=own|shared, node, far_transfer, far_occupancy, far_bandwidth, cores "
                      "(docs/reports.md)"));
static cl::opt<ReportFormat>
    formatFlag("format", cl::cat(category), cl::init(ReportFormat::Text),
               cl::desc("How a report is written; json where -o ends in .json"),
               cl::values(clEnumValN(ReportFormat::Text, "text", "for people"),
                          clEnumValN(ReportFormat::Json, "json", "for programs")));
static cl::opt<runtime::Theme>
    themeFlag("theme", cl::cat(category), cl::init(runtime::Theme::Auto),
              cl::desc("The colours of --emit=svg and html"),
              cl::values(clEnumValN(runtime::Theme::Auto, "auto", "as the viewer is set"),
                         clEnumValN(runtime::Theme::Light, "light", "on white"),
                         clEnumValN(runtime::Theme::Dark, "dark", "on black")));
static cl::list<std::string> compareFlag("compare", cl::cat(category), cl::value_desc("A B ..."),
                                         cl::desc("Predict several inputs and print one table"));

static cl::opt<bool>
    formatPipeFlag("format-pipe", cl::cat(category),
                   cl::desc("Lay out the .pipe file; -o may name the input itself"));

static cl::opt<bool> verifyFlag("verify", cl::cat(category),
                                cl::desc("Check every invariant of a program, a .dpx file or a "
                                         "module of stream.program, and print what holds"));
static cl::opt<std::string> hardwareQueuesFlag(
    "hardware-queues", cl::cat(category), cl::value_desc("N"),
    cl::desc("Check that the program finishes on N queues per rank (0: one for every stream); with "
             "--verify, instead of as if there were one"));
static cl::opt<std::string> groupLimitFlag(
    "group-limit", cl::cat(category), cl::value_desc("N"),
    cl::desc("Split groups of more than N transfers in a module of stream.program; with --verify, "
             "report them (default 256)"));

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

using OptionList = llvm::SmallVector<const cl::Option *, 16>;

/// The options that mean nothing for a kind of input. Those that say how to compile mean
/// nothing for an input that is compiled.
static OptionList getUnusedOptions(InputKind kind) {
  const cl::Option *params = std::addressof(paramFlag), *share = std::addressof(shareFlag);
  switch (kind) {
  case InputKind::Schedule:
    return {&dialectFlag, share};
  case InputKind::Csv:
    return {params, &scheduleFlag};
  case InputKind::Program:
    return {&ranksFlag,    &microbatchesFlag, params,      &scheduleFlag, &forwardOnlyFlag,
            &onlyRankFlag, &planCostFlag,     &sparesFlag, &dialectFlag,  share};
  case InputKind::Module:
    return {&ranksFlag,    &microbatchesFlag, params,       &scheduleFlag, &forwardOnlyFlag,
            &onlyRankFlag, &planCostFlag,     &dialectFlag, share};
  }
  return {};
}

static Status checkOptionsOfKind(const DriverOptions &options) {
  for (const cl::Option *option : getUnusedOptions(options.inputKind))
    if (option->getNumOccurrences() != 0)
      return Status::failure(fmt::format("--{} does not apply: '{}' is {}", option->ArgStr.str(),
                                         options.input, describe(options.inputKind)));
  return Status::success();
}

/// Where two inputs are compared, an option must mean something for one of them.
static Status checkOptionsOfKinds(const DriverOptions &options) {
  // The sizes of a schedule in cells are its own; a difference in size is no error here.
  auto getUnused = [](InputKind kind) {
    OptionList unused = getUnusedOptions(kind);
    if (kind == InputKind::Csv)
      unused.append({&ranksFlag, &microbatchesFlag});
    return unused;
  };
  OptionList ofInput = getUnused(options.inputKind);
  for (const cl::Option *option : getUnused(options.diffKind))
    if (option->getNumOccurrences() != 0 && llvm::is_contained(ofInput, option))
      return Status::failure(fmt::format(
          "--{} does not apply: '{}' is {}, and '{}' is {}", option->ArgStr.str(), options.diff,
          describe(options.diffKind), options.input, describe(options.inputKind)));
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
                                       "report, svg, html, trace, cuda, pipe, torch-csv or "
                                       "torch-csv-comms",
                                       options.input));
  return Status::success();
}

/// Options that change some of the outputs of a schedule.
static Status checkOptionsOfOutput(const DriverOptions &options) {
  auto reject = [](const cl::Option &option, const char *expected) {
    if (option.getNumOccurrences() == 0)
      return Status::success();
    return Status::failure(fmt::format("--{} does not apply to this output: expected {}",
                                       option.ArgStr.str(), expected));
  };
  bool hasSlots = options.emit == Emit::Streams || options.emit == Emit::Program ||
                  options.emit == Emit::Report || options.emit == Emit::Cuda ||
                  isPicture(options.emit);
  bool hasRanks = hasSlots || options.emit == Emit::Default || options.emit == Emit::Order ||
                  options.emit == Emit::Dataflow;
  if (!hasRanks)
    if (Status status = reject(onlyRankFlag, "--emit=order, dataflow, streams, program or cuda");
        !status)
      return status;
  if (!hasSlots)
    if (Status status = reject(sparesFlag, "--emit=streams, program or cuda"); !status)
      return status;
  return options.emit == Emit::Ast ? reject(planCostFlag, "a level after ast") : Status::success();
}

/// What is checked is a program, and it is checked as it is.
static Status checkOptionsOfVerify(const DriverOptions &options) {
  if (options.inputKind == InputKind::Schedule || options.inputKind == InputKind::Csv)
    return Status::failure(fmt::format("--verify checks a program, '{}' is {}: expected a .dpx "
                                       "file or a module of stream.program (every compilation "
                                       "checks what it writes)",
                                       options.input, describe(options.inputKind)));
  if (sparesFlag.getNumOccurrences() != 0)
    return Status::failure(fmt::format("--spares does not apply: '{}' is {}", options.input,
                                       describe(options.inputKind)));
  return Status::success();
}

Status opt::checkOptionsApply(const DriverOptions &options) {
  if (options.isDiff())
    return checkOptionsOfKinds(options);
  if (options.compares)
    return Status::success();
  if (options.verify)
    if (Status status = checkOptionsOfVerify(options); !status)
      return status;
  if (Status status = checkOptionsOfKind(options); !status)
    return status;
  if (groupLimitFlag.getNumOccurrences() != 0 && !options.verify &&
      options.inputKind != InputKind::Module)
    return Status::failure(
        fmt::format("--group-limit does not apply: '{}' is {}, expected a module "
                    "of stream.program, or --verify",
                    options.input, describe(options.inputKind)));
  if (options.inputKind == InputKind::Module && options.emit == Emit::Default &&
      sparesFlag.getNumOccurrences() != 0)
    return Status::failure("--spares does not apply without --emit or an output .dpx: give it to "
                           "the pass, --pipe-assign-slots=spares=N");
  if (Status status = checkLevel(options); !status)
    return status;
  return options.inputKind == InputKind::Module ? Status::success() : checkOptionsOfOutput(options);
}

/// What does not apply where inputs are compared instead of one being compiled.
static Status rejectWith(const char *comparison, std::initializer_list<const cl::Option *> unused) {
  for (const cl::Option *option : unused)
    if (option->getNumOccurrences() != 0)
      return Status::failure(
          fmt::format("--{} does not apply with {}", option->ArgStr.str(), comparison));
  return Status::success();
}

/// The other input, where two are compared, and options of an output that there is none of.
static Status readDiff(DriverOptions &options) {
  options.diff = diffFlag;
  if (diffFlag.getNumOccurrences() == 0)
    return Status::success();
  if (options.diff.empty())
    return Status::failure("--diff names no input to compare with: --diff A B");
  if (options.diff == "-" && options.input == "-")
    return Status::failure("--diff reads the standard input once: name one of the two inputs");
  return rejectWith("--diff", {&emitFlag, &onlyRankFlag, &sparesFlag, &legacyOutputFlag,
                               &verifyFlag, &groupLimitFlag});
}

/// The other inputs, where predictions are compared.
static Status readComparison(DriverOptions &options) {
  options.compares = compareFlag.getNumOccurrences() != 0;
  if (!options.compares)
    return Status::success();
  for (const std::string &input : compareFlag)
    if (!input.empty())
      options.compared.push_back(input);
  if (options.compared.empty())
    return Status::failure("--compare names fewer than two inputs: --compare A B ...");
  return rejectWith("--compare", {&emitFlag, &onlyRankFlag, &legacyOutputFlag, &diffFlag,
                                  &verifyFlag, &groupLimitFlag});
}

/// The costs are read again over those of each program.
static Status readPrediction(DriverOptions &options) {
  options.reportFormat = formatFlag;
  if (formatFlag.getNumOccurrences() == 0 && options.output.ends_with(".json"))
    options.reportFormat = ReportFormat::Json;
  options.theme = themeFlag;
  Result<runtime::CostOption> costs = runtime::CostOption::parse(costFlag.getValue());
  if (!costs)
    return Status::failure("--cost: " + costs.message());
  options.predictionCosts = std::move(*costs);
  const bool reports = options.compares || options.emit == Emit::Report;
  const bool predicts = reports || isPicture(options.emit);
  if (predicts && onlyRankFlag.getNumOccurrences() != 0)
    return Status::failure("--only-rank does not apply with --emit=report, svg, html or trace: a "
                           "prediction needs all ranks");
  if (!predicts && costFlag.getNumOccurrences() != 0)
    return Status::failure("--cost does not apply without --emit=report, svg, html or trace, or "
                           "--compare");
  if (options.emit != Emit::Svg && options.emit != Emit::Html && themeFlag.getNumOccurrences() != 0)
    return Status::failure("--theme does not apply without --emit=svg or html");
  if (!reports && formatFlag.getNumOccurrences() != 0)
    return Status::failure("--format does not apply without --emit=report or --compare");
  return Status::success();
}

/// What is said of a program is text, and there is one text.
static Status readVerify(DriverOptions &options) {
  options.verify = verifyFlag;
  const bool hasProgram = options.verify || options.emit == Emit::Program ||
                          options.emit == Emit::Report || options.emit == Emit::Cuda ||
                          isPicture(options.emit);
  if (hardwareQueuesFlag.getNumOccurrences() != 0 && !hasProgram)
    return Status::failure("--hardware-queues does not apply to this output: expected --verify, or "
                           "a program or a report, which are checked on the way");
  if (hardwareQueuesFlag.getNumOccurrences() != 0 && onlyRankFlag.getNumOccurrences() != 0)
    return Status::failure("--hardware-queues does not apply with --only-rank: whether a program "
                           "finishes depends on all ranks");
  if (options.verify && options.emit != Emit::Default)
    return Status::failure("--verify prints what holds: --emit and an output .dpx, .csv, .svg "
                           "or .html do not apply");
  if (Status status = readNumber(groupLimitFlag, options.groupLimit, 1); !status)
    return status;
  return readNumber(hardwareQueuesFlag, options.hardwareQueues, 0);
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
  const cl::Option *ofCompiler[] = {&ranksFlag,
                                    &microbatchesFlag,
                                    std::addressof(paramFlag),
                                    &scheduleFlag,
                                    &forwardOnlyFlag,
                                    &onlyRankFlag,
                                    &planCostFlag,
                                    &sparesFlag,
                                    &emitFlag,
                                    &dialectFlag,
                                    &legacyOutputFlag,
                                    std::addressof(shareFlag),
                                    &diffFlag,
                                    &verifyFlag,
                                    &hardwareQueuesFlag,
                                    &groupLimitFlag,
                                    std::addressof(compareFlag),
                                    &costFlag,
                                    &formatFlag,
                                    &themeFlag};
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
  if (output.ends_with(".svg"))
    return Emit::Svg;
  if (output.ends_with(".html"))
    return Emit::Html;
  return Emit::Default;
}

/// What to write, and where to.
static Status readOutput(DriverOptions &options) {
  for (const std::string &input : {options.input, options.diff})
    if (llvm::sys::fs::equivalent(input, options.output))
      return Status::failure(fmt::format("the output '{}' is the input", options.output));
  const std::string profile = runtime::getCostFile(costFlag.getValue());
  if (!profile.empty() && llvm::sys::fs::equivalent(profile, options.output))
    return Status::failure(fmt::format("the output '{}' is the profile of --cost", options.output));
  Emit ofEnding = emitFromEnding(options.output);
  options.emit = emitFlag == Emit::Default ? ofEnding : emitFlag;
  bool isSaid = options.emit == ofEnding ||
                (ofEnding == Emit::TorchCsv && options.emit == Emit::TorchCsvComms);
  if (ofEnding != Emit::Default && !isSaid && !options.isDiff())
    return Status::failure(fmt::format("--emit asks for something else than what the ending of "
                                       "'{}' says: leave one of them out",
                                       options.output));
  options.torchOutput.legacy = legacyOutputFlag;
  if (options.emit == Emit::Program && options.outputIsStdout())
    return Status::failure("a program file is binary: name it with -o FILE.dpx");
  if (options.emit == Emit::Cuda && options.outputIsStdout())
    return Status::failure("--emit=cuda writes a folder: name it with -o FOLDER");
  if (Status status = readNumber(onlyRankFlag, options.onlyRank, 0); !status)
    return status;
  std::optional<uint32_t> spares;
  Status status = readNumber(sparesFlag, spares, 0, kMaxSpares);
  options.spares = spares.value_or(kDefaultSpares);
  return status;
}

/// How a schedule in PyTorch's grammar is read.
static Status readCsvOptions(TorchReadOptions &options) {
  options.dialect = dialectFlag;
  return readShares(options);
}

/// Which schedule, for which sizes and times.
static Status readScheduleOptions(frontend::Options &options) {
  options.schedule = scheduleFlag;
  options.forwardOnly = forwardOnlyFlag;
  if (Status status = readNumber(ranksFlag, options.ranks, 1); !status)
    return status;
  if (Status status = readNumber(microbatchesFlag, options.microbatches, 1); !status)
    return status;
  if (Status status = readParams(options); !status)
    return status;
  if (planCostFlag.getNumOccurrences() != 0 && planCostFlag.empty())
    return Status::failure("--plan-cost is empty, expected times like fwd=1,bwd=2");
  Result<Costs> costs = Costs::parse(planCostFlag);
  if (!costs)
    return Status::failure("--plan-cost: " + costs.message());
  options.planCosts = *costs;
  return Status::success();
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
  if (Status status = readDiff(options); !status)
    return status;
  if (Status status = readComparison(options); !status)
    return status;
  if (Status status = readOutput(options); !status)
    return status;
  if (Status status = readVerify(options); !status)
    return status;
  if (Status status = readPrediction(options); !status)
    return status;
  if (Status status = readCsvOptions(options.torch); !status)
    return status;
  if (Status status = readScheduleOptions(options.schedule); !status)
    return status;
  return options;
}
