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
                                   "What to compile from a .pipe file, and how far.");

static cl::opt<std::string> ranksFlag("ranks", cl::cat(category), cl::value_desc("N"),
                                      cl::desc("Number of ranks"));
static cl::opt<std::string> microbatchesFlag("microbatches", cl::cat(category), cl::value_desc("M"),
                                             cl::desc("Number of micro-batches"));
static cl::list<std::string> paramFlag("param", cl::cat(category), cl::value_desc("NAME=VALUE"),
                                       cl::desc("A further parameter of the schedule"));
static cl::opt<std::string> scheduleFlag("schedule", cl::cat(category), cl::value_desc("NAME"),
                                         cl::desc("Which schedule of the file"));
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

bool DriverOptions::inputIsSchedule() const { return llvm::StringRef(input).ends_with(".pipe"); }

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

/// Options that say how to compile a schedule mean nothing for a module.
static Status checkOptionsApply(const DriverOptions &options) {
  if (options.inputIsSchedule())
    return Status::success();
  const cl::Option *ofSchedules[] = {&ranksFlag,    &microbatchesFlag, std::addressof(paramFlag),
                                     &scheduleFlag, &forwardOnlyFlag,  &onlyRankFlag,
                                     &planCostFlag};
  for (const cl::Option *option : ofSchedules)
    if (option->getNumOccurrences() != 0)
      return Status::failure(fmt::format("--{} does not apply: '{}' is not a .pipe file",
                                         option->ArgStr.str(), options.input));
  if (options.emit == Emit::Default && sparesFlag.getNumOccurrences() != 0)
    return Status::failure("--spares does not apply without --emit or an output .dpx: give it to "
                           "the pass, --pipe-assign-slots=spares=N");
  return Status::success();
}

/// The formatter reads a text and writes a text; nothing else about it can be chosen.
static Status checkOptionsOfFormatter() {
  const cl::Option *ofCompiler[] = {&ranksFlag,    &microbatchesFlag, std::addressof(paramFlag),
                                    &scheduleFlag, &forwardOnlyFlag,  &onlyRankFlag,
                                    &planCostFlag, &sparesFlag,       &emitFlag};
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

  if (Status status = checkOptionsApply(options); !status)
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
  bool needsSchedule = options.emit == Emit::Ast || options.emit == Emit::Order ||
                       options.emit == Emit::Pipe || options.emit == Emit::TorchCsv;
  if (needsSchedule && !options.inputIsSchedule())
    return Status::failure(fmt::format(
        "'{}' is not a .pipe file: this level of --emit starts from one", options.input));
  return options;
}
