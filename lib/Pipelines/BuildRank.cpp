//===- BuildRank.cpp - from a rank's list to a `pipe.rank` op ---------------===//

#include "dualpipe/Pipelines/BuildRank.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace mlir;

std::vector<Location> dualpipe::getLocations(MLIRContext *context, const Schedule &schedule) {
  std::vector<StringAttr> files;
  for (const std::string &file : schedule.files)
    files.push_back(StringAttr::get(context, file));
  std::vector<Location> locations;
  locations.reserve(schedule.locations.size());
  for (const SourceLoc &loc : schedule.locations)
    locations.push_back(FileLineColLoc::get(files[loc.file], loc.line, loc.column));
  return locations;
}

namespace {

class RankBuilder {
public:
  RankBuilder(OpBuilder &builder, const Timeline &timeline, uint32_t rank,
              const std::vector<Location> &locations)
      : builder(builder), timeline(timeline), schedule(timeline.getIndex().getSchedule()),
        order(schedule.ranks[rank]), rank(rank), locations(locations) {}

  pipe::RankOp build();

private:
  void buildEntry(const TimelineEntry &entry);
  void buildGroup(uint32_t begin);
  void buildCompute(uint32_t op);
  void markPhase(uint32_t op);
  Location getLoc(uint32_t op) const { return locations[order.loc[op]]; }

  OpBuilder &builder;
  const Timeline &timeline;
  const Schedule &schedule;
  const RankOrder &order;
  uint32_t rank;
  const std::vector<Location> &locations;
  size_t nextPhase = 0;
};

} // namespace

pipe::RankOp RankBuilder::build() {
  auto rankOp = pipe::RankOp::create(builder, locations[0], rank, schedule.name, !schedule.training,
                                     schedule.model);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&rankOp.getBodyRegion().front());
  for (const TimelineEntry &entry : timeline.project(rank))
    buildEntry(entry);
  return rankOp;
}

void RankBuilder::buildEntry(const TimelineEntry &entry) {
  TransferKind kind = entry.isGrad ? TransferKind::Gradient : TransferKind::Activation;
  switch (entry.kind) {
  case TimelineEntry::Kind::Compute:
    return buildGroup(entry.op);
  case TimelineEntry::Kind::Send:
    pipe::SendOp::create(builder, locations[entry.loc], kind, entry.stage, entry.microbatch,
                         entry.peer);
    return;
  case TimelineEntry::Kind::Recv:
    pipe::RecvOp::create(builder, locations[entry.loc], kind, entry.stage, entry.microbatch,
                         entry.peer);
    return;
  case TimelineEntry::Kind::Reduce:
    pipe::ReduceGradOp::create(builder, getLoc(entry.op), entry.stage,
                               timeline.getCopies()[entry.stage]);
    return;
  case TimelineEntry::Kind::Step:
    pipe::StepOp::create(builder, getLoc(entry.op), entry.stage);
    return;
  }
}

/// Phases are marked before their first compute op: transfers around it belong
/// to whatever the rank is doing at the time.
void RankBuilder::markPhase(uint32_t op) {
  while (nextPhase != order.phases.size() && order.phases[nextPhase].begin <= op) {
    // A phase without ops has no place in the program.
    bool isEmpty = nextPhase + 1 != order.phases.size() &&
                   order.phases[nextPhase + 1].begin <= order.phases[nextPhase].begin;
    if (!isEmpty)
      pipe::PhaseOp::create(builder, getLoc(op), schedule.phaseNames[order.phases[nextPhase].name]);
    ++nextPhase;
  }
}

void RankBuilder::buildGroup(uint32_t begin) {
  markPhase(begin);
  uint32_t end = uint32_t(order.groupEnd(begin));
  if (end - begin == 1)
    return buildCompute(begin);
  auto fused = pipe::FusedFbOp::create(builder, getLoc(begin));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(fused.getBodyRegion().front().getTerminator());
  for (uint32_t op = begin; op != end; ++op)
    buildCompute(op);
}

void RankBuilder::buildCompute(uint32_t op) {
  uint32_t stage = order.stage[op], mb = order.microbatch[op];
  const Pipeline &pipeline = schedule.pipelines[schedule.findPipeline(mb)];
  bool first = stage == pipeline.firstStage, last = stage == pipeline.getLastStage();
  Location loc = getLoc(op);
  switch (order.kind[op]) {
  case OpKind::Forward:
    pipe::FwdOp::create(builder, loc, stage, mb, first, last);
    return;
  case OpKind::Backward:
    pipe::BwdOp::create(builder, loc, stage, mb, first, last);
    return;
  case OpKind::BackwardInput:
    pipe::BwdInputOp::create(builder, loc, stage, mb, first, last);
    return;
  case OpKind::BackwardWeight:
    pipe::BwdWeightOp::create(builder, loc, stage, mb, first, last);
    return;
  }
}

pipe::RankOp dualpipe::buildRank(OpBuilder &builder, const Timeline &timeline, uint32_t rank,
                                 const std::vector<Location> &locations) {
  return RankBuilder(builder, timeline, rank, locations).build();
}
