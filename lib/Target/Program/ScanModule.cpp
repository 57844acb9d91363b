//===- ScanModule.cpp - shared tables from the programs of a module ---------===//
//
// What a `.mlir` file says of its schedule lies in the commands: which rank runs
// which stage of which micro-batch, and who sends to whom. Pipelines are runs of
// micro-batches with the same stages on the same ranks.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Target/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

#include <map>
#include <set>

using namespace dualpipe;
using namespace mlir;
using program::SharedInfo;

namespace {

/// The stages that one micro-batch flows through, with their ranks.
struct Chain {
  std::map<uint32_t, uint32_t> ranks; ///< by stage
  std::optional<uint32_t> first, last;

  bool operator==(const Chain &other) const {
    return ranks == other.ranks && first == other.first && last == other.last;
  }
};

class ModuleScanner {
public:
  explicit ModuleScanner(ModuleOp module) : module(module) {}

  /// Fills the shared section; `partial` says whether a placement was made up.
  LogicalResult run(SharedInfo &info, bool &partial);

private:
  LogicalResult scanProgram(stream::ProgramOp program);
  void scanOp(uint32_t rank, Operation *op);
  void scanLaunch(uint32_t rank, stream::LaunchOp launch);
  template <typename TransferOp> void scanTransfer(uint32_t rank, TransferOp op);
  void scanReduce(stream::ReduceOp reduce);
  void scanStream(uint32_t rank, stream::StreamAttr entry);
  void addChannel(uint32_t source, uint32_t destination, TransferKind kind);
  void addLocation(Location loc);
  void countRank(uint32_t rank) { info.numRanks = std::max(info.numRanks, rank + 1); }

  void fillChannels();
  void fillPipelines();
  void fillCopies();
  void fillGaps();
  void addGap(uint32_t begin, uint32_t end);
  void addPipeline(const Chain &chain, uint32_t firstMicrobatch, uint32_t numMicrobatches);

  ModuleOp module;
  SharedInfo info;
  bool partial = false;
  std::set<uint32_t> present;
  uint32_t firstRank = 0; ///< of the first program
  std::set<std::tuple<uint32_t, uint32_t, unsigned>> channels;
  std::set<std::vector<uint32_t>> groups;
  std::map<uint32_t, Chain> chains;              ///< by micro-batch
  std::map<uint32_t, std::set<uint32_t>> copies; ///< by stage, as reductions tell
  llvm::SetVector<StringRef> phases;
  llvm::SetVector<Attribute> locations;
};

} // namespace

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

void ModuleScanner::addLocation(Location loc) {
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    locations.insert(place);
}

void ModuleScanner::addChannel(uint32_t source, uint32_t destination, TransferKind kind) {
  channels.insert({source, destination, static_cast<unsigned>(kind)});
  countRank(source);
  countRank(destination);
}

void ModuleScanner::scanStream(uint32_t rank, stream::StreamAttr entry) {
  if (entry.getKind() == program::StreamKind::Send)
    addChannel(rank, entry.getPeer(), entry.getTransfer());
  if (entry.getKind() == program::StreamKind::Recv)
    addChannel(entry.getPeer(), rank, entry.getTransfer());
  if (entry.getKind() == program::StreamKind::Reduce) {
    groups.insert(entry.getRanks().vec());
    for (uint32_t member : entry.getRanks())
      countRank(member);
  }
}

void ModuleScanner::scanLaunch(uint32_t rank, stream::LaunchOp launch) {
  Chain &chain = chains[launch.getMicrobatch()];
  chain.ranks.try_emplace(launch.getStage(), rank);
  if (launch.getFirst())
    chain.first = launch.getStage();
  if (launch.getLast())
    chain.last = launch.getStage();
  if (launch.getSlots().has(program::SlotKind::Saved))
    info.training = true;
}

/// A transfer names the ranks of two neighbouring stages.
template <typename TransferOp> void ModuleScanner::scanTransfer(uint32_t rank, TransferOp op) {
  constexpr bool sends = std::is_same_v<TransferOp, stream::SendOp>;
  uint32_t source = sends ? rank : op.getPeer(), destination = sends ? op.getPeer() : rank;
  addChannel(source, destination, op.getKind());
  Chain &chain = chains[op.getMicrobatch()];
  chain.ranks.try_emplace(op.getStage(), destination);
  bool isActivation = op.getKind() == TransferKind::Activation;
  if (!isActivation)
    chain.ranks.try_emplace(op.getStage() + 1, source);
  else if (op.getStage() != 0)
    chain.ranks.try_emplace(op.getStage() - 1, source);
}

/// A reduction names the ranks that hold a copy of its stage.
void ModuleScanner::scanReduce(stream::ReduceOp reduce) {
  groups.insert({reduce.getRanks().begin(), reduce.getRanks().end()});
  copies[reduce.getStage()].insert(reduce.getRanks().begin(), reduce.getRanks().end());
}

void ModuleScanner::scanOp(uint32_t rank, Operation *op) {
  addLocation(op->getLoc());
  if (auto launch = dyn_cast<stream::LaunchOp>(op))
    scanLaunch(rank, launch);
  else if (auto send = dyn_cast<stream::SendOp>(op))
    scanTransfer(rank, send);
  else if (auto recv = dyn_cast<stream::RecvOp>(op))
    scanTransfer(rank, recv);
  else if (auto phase = dyn_cast<stream::PhaseOp>(op))
    phases.insert(phase.getName());
  else if (auto reduce = dyn_cast<stream::ReduceOp>(op))
    scanReduce(reduce);
}

LogicalResult ModuleScanner::scanProgram(stream::ProgramOp program) {
  uint32_t rank = program.getRank();
  countRank(rank);
  if (present.empty())
    firstRank = rank;
  if (!present.insert(rank).second)
    return program.emitError() << "rank " << rank << " has a second program";
  StringRef schedule = program.getSchedule();
  if (info.schedule.empty())
    info.schedule = schedule.str();
  else if (info.schedule != schedule)
    return program.emitError() << "rank " << rank << ": expected a program of @" << info.schedule
                               << ", got one of @" << schedule;
  if (present.size() == 1)
    info.contract = program.getModel();
  else if (info.contract != program.getModel())
    return program.emitError() << "rank " << rank
                               << ": expected the same model as in the program of rank "
                               << firstRank;
  for (stream::StreamAttr entry : program.getStreams().getAsRange<stream::StreamAttr>())
    scanStream(rank, entry);
  program.getBodyRegion().walk([&](Operation *op) { scanOp(rank, op); });
  return success();
}

//===----------------------------------------------------------------------===//
// Filling the tables
//===----------------------------------------------------------------------===//

void ModuleScanner::fillChannels() {
  for (auto [source, destination, kind] : channels)
    info.channels.push_back({source, destination, getChannelKind(static_cast<TransferKind>(kind)),
                             0, program::kDigestSeed});
  for (const std::vector<uint32_t> &group : groups)
    info.reduceGroups.push_back({group});
}

/// Where no program has the first or last stage, there is one more before or after
/// those that are known. Stages that no program speaks of are put on rank 0.
void ModuleScanner::addPipeline(const Chain &chain, uint32_t firstMicrobatch,
                                uint32_t numMicrobatches) {
  program::PipelineInfo pipeline;
  pipeline.name = ("pipeline" + Twine(info.pipelines.size())).str();
  uint32_t least = chain.ranks.begin()->first, greatest = chain.ranks.rbegin()->first;
  pipeline.firstStage = chain.first.value_or(least == 0 ? 0 : least - 1);
  uint32_t lastStage = chain.last.value_or(greatest + 1);
  // A model contract that names size groups knows how many stages there are.
  if (lastStage == info.contract.sizeGroup.size())
    lastStage = greatest;
  partial |= !chain.first || !chain.last;
  pipeline.firstMicrobatch = firstMicrobatch;
  pipeline.numMicrobatches = numMicrobatches;
  for (uint32_t stage = pipeline.firstStage; stage <= lastStage; ++stage) {
    auto known = chain.ranks.find(stage);
    partial |= known == chain.ranks.end();
    pipeline.placement.push_back(known == chain.ranks.end() ? 0 : known->second);
  }
  pipeline.numStages = static_cast<uint32_t>(pipeline.placement.size());
  info.numStages = std::max(info.numStages, pipeline.firstStage + pipeline.numStages);
  info.pipelines.push_back(std::move(pipeline));
}

/// Micro-batches that no program speaks of go with those that follow them.
void ModuleScanner::fillPipelines() {
  uint32_t next = 0;
  for (auto begin = chains.begin(); begin != chains.end();) {
    auto end = std::next(begin);
    uint32_t lastMicrobatch = begin->first;
    for (; end != chains.end() && end->second == begin->second; ++end)
      lastMicrobatch = end->first;
    addPipeline(begin->second, next, lastMicrobatch + 1 - next);
    next = lastMicrobatch + 1;
    begin = end;
  }
  info.numMicrobatches = next;
}

/// Copies on ranks that are not in the module, which no transfer told of: each is a
/// pipeline of its own with one micro-batch.
void ModuleScanner::fillCopies() {
  for (const program::PipelineInfo &pipeline : info.pipelines)
    for (auto [index, rank] : llvm::enumerate(pipeline.placement))
      copies[pipeline.firstStage + static_cast<uint32_t>(index)].erase(rank);
  for (const auto &[stage, ranks] : copies)
    for (uint32_t rank : ranks) {
      if (present.count(rank))
        continue;
      partial = true;
      Chain chain;
      chain.ranks.try_emplace(stage, rank);
      chain.first = chain.last = stage;
      addPipeline(chain, info.numMicrobatches, 1);
      ++info.numMicrobatches;
    }
}

void ModuleScanner::addGap(uint32_t begin, uint32_t end) {
  if (begin >= end)
    return;
  std::string name = ("pipeline" + Twine(info.pipelines.size())).str();
  info.pipelines.push_back(
      {name, begin, end - begin, info.numMicrobatches++, 1, std::vector<uint32_t>(end - begin, 0)});
  info.numStages = std::max(info.numStages, end);
}

/// Stages that the module does not speak of, before those that it does or named by the
/// model contract: one pipeline for each gap.
void ModuleScanner::fillGaps() {
  std::vector<std::pair<uint32_t, uint32_t>> ranges; // first stage, one past the last
  for (const program::PipelineInfo &pipeline : info.pipelines)
    ranges.emplace_back(pipeline.firstStage, pipeline.firstStage + pipeline.numStages);
  llvm::sort(ranges);
  uint32_t next = 0;
  for (auto [begin, end] : ranges) {
    addGap(next, begin);
    next = std::max(next, end);
  }
  addGap(next, static_cast<uint32_t>(info.contract.sizeGroup.size()));
}

/// Files in the order of their first location; location 0 is always there.
static void fillLocations(SharedInfo &info, ArrayRef<Attribute> places) {
  llvm::StringMap<uint32_t> files;
  for (Attribute place : places) {
    auto loc = cast<FileLineColLoc>(place);
    StringRef file = loc.getFilename().getValue();
    auto [entry, isNew] = files.try_emplace(file, static_cast<uint32_t>(info.files.size()));
    if (isNew)
      info.files.push_back(file.str());
    info.locations.push_back({entry->second, loc.getLine(), loc.getColumn()});
  }
  if (info.locations.empty())
    info.locations.push_back({0, 0, 0});
}

LogicalResult ModuleScanner::run(SharedInfo &result, bool &isPartial) {
  info.training = false;
  info.producer = "dualpipe-opt";
  for (stream::ProgramOp program : module.getOps<stream::ProgramOp>()) {
    if (present.empty())
      addLocation(program.getLoc());
    if (failed(scanProgram(program)))
      return failure();
  }
  if (present.empty())
    return module.emitError() << "expected a stream.program for each rank, got none";
  if (chains.empty())
    return module.emitError() << "expected programs with launches, got none";
  fillChannels();
  fillPipelines();
  fillCopies();
  partial |= present.size() != info.numRanks;
  if (partial)
    fillGaps();
  info.phaseNames.assign(phases.begin(), phases.end());
  fillLocations(info, locations.getArrayRef());
  result = std::move(info);
  isPartial = partial;
  return success();
}

FailureOr<SharedTables> SharedTables::scan(ModuleOp module) {
  SharedInfo info;
  bool partial = false;
  if (failed(ModuleScanner(module).run(info, partial)))
    return failure();
  SharedTables tables(std::move(info), module.getContext());
  tables.partial = partial;
  return tables;
}
