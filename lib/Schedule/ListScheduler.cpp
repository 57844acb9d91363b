//===- ListScheduler.cpp - the simulation behind `greedy` --------------------===//

#include "ListScheduler.h"

#include <algorithm>
#include <cassert>

using namespace dualpipe;

Products dualpipe::getProducts(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return {size_t(Product::Output), 1};
  case OpKind::Backward:
    return {size_t(Product::InputGrad), 2};
  case OpKind::BackwardInput:
    return {size_t(Product::InputGrad), 1};
  case OpKind::BackwardWeight:
    return {size_t(Product::WeightGrad), 1};
  }
  return {};
}

/// What an op takes away from others, by kind.
static constexpr uint8_t kTakenBits[] = {ForwardTaken, BackwardTaken | WeightTaken, BackwardTaken,
                                         WeightTaken};

bool ChunkState::isReady(OpKind kind, uint32_t mb) const {
  auto has = [&](uint8_t bits) { return (progress[mb] & bits) == bits; };
  switch (kind) {
  case OpKind::Forward:
    return has(HasInput);
  case OpKind::Backward:
  case OpKind::BackwardInput:
    return has(ForwardDone | HasGradient);
  case OpKind::BackwardWeight:
    return has(HalfDone);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

ListScheduler::ListScheduler(Schedule &schedule, const GreedyRules &rules, const Costs &costs)
    : schedule(schedule), rules(rules), costs(costs), ranks(schedule.numRanks) {
  addChunks();
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    addLimits(rank);
    reserveFixedOps(rank);
  }
}

void ListScheduler::addChunks() {
  for (uint32_t p = 0; p != schedule.pipelines.size(); ++p) {
    const Pipeline &pipeline = schedule.pipelines[p];
    firstChunk.push_back(chunks.size());
    for (uint32_t s = 0; s != pipeline.numStages; ++s) {
      ChunkState &chunk = chunks.emplace_back();
      chunk.ref = {p, pipeline.firstStage + s};
      chunk.rank = pipeline.placement[s];
      chunk.progress.resize(pipeline.numMicrobatches);
    }
  }
}

void ListScheduler::addLimits(uint32_t rank) {
  const std::vector<Limit> &limits = rules.ranks[rank].limits;
  ranks[rank].counts.resize(limits.size());
  for (uint32_t i = 0; i != limits.size(); ++i) {
    Products from = getProducts(limits[i].from), to = getProducts(limits[i].to);
    for (ChunkRef ref : limits[i].chunks) {
      ChunkState &chunk = chunks[findChunk(ref)];
      assert(chunk.rank == rank && "a limit on a chunk of another rank");
      chunk.opens[from.first].push_back(i);
      chunk.closes[to.first + to.count - 1].push_back(i);
    }
  }
}

ChunkOp ListScheduler::getFixedOp(uint32_t rank, size_t op) const {
  const RankOrder &order = schedule.ranks[rank];
  uint32_t pipeline = uint32_t(schedule.findPipeline(order.microbatch[op]));
  assert(pipeline != schedule.pipelines.size() && "an op of no pipeline");
  size_t chunk = findChunk({pipeline, order.stage[op]});
  return {order.kind[op], uint32_t(chunk),
          order.microbatch[op] - schedule.pipelines[pipeline].firstMicrobatch};
}

/// What stands in an order already is not for the rules to take.
void ListScheduler::reserveFixedOps(uint32_t rank) {
  RankOrder &order = schedule.ranks[rank];
  RankState &state = ranks[rank];
  state.numFixed = order.size();
  for (size_t op = 0; op != order.size(); ++op) {
    ChunkOp fixed = getFixedOp(rank, op);
    chunks[fixed.chunk].progress[fixed.mb] |= kTakenBits[size_t(fixed.kind)];
    if (order.group[op] != RankOrder::kAlone)
      state.nextGroup = std::max(state.nextGroup, order.group[op] + 1);
  }
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

void ListScheduler::run() {
  // 1. At the start the first stages have all their inputs.
  for (const Pipeline &pipeline : schedule.pipelines) {
    uint32_t first = uint32_t(firstChunk[&pipeline - schedule.pipelines.data()]);
    for (uint32_t mb = 0; mb != pipeline.numMicrobatches; ++mb) {
      arrive(first, mb, HasInput);
      arrive(first + pipeline.numStages - 1, mb, HasGradient);
    }
  }
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    wake(rank);

  // 2. What ends or arrives at one time, then the ranks that it concerns.
  while (true) {
    std::sort(awake.begin(), awake.end());
    for (uint32_t rank : awake) {
      ranks[rank].isAwake = false;
      decide(rank);
    }
    awake.clear();
    if (events.empty())
      return;
    now = events.top().time;
    while (!events.empty() && events.top().time == now) {
      Event event = events.top();
      events.pop();
      handle(event);
    }
  }
}

void ListScheduler::wake(uint32_t rank) {
  if (ranks[rank].isAwake)
    return;
  ranks[rank].isAwake = true;
  awake.push_back(rank);
}

void ListScheduler::handle(const Event &event) {
  switch (event.kind) {
  case Event::GroupEnds: {
    std::vector<ChunkOp> ended = std::move(ranks[event.index].running);
    ranks[event.index].running.clear();
    for (const ChunkOp &op : ended)
      finish(event.index, op);
    wake(event.index);
    return;
  }
  case Event::InputArrives:
    return arrive(event.index, event.mb, HasInput);
  case Event::GradientArrives:
    return arrive(event.index, event.mb, HasGradient);
  }
}

void ListScheduler::arrive(uint32_t chunk, uint32_t mb, Progress what) {
  ChunkState &state = chunks[chunk];
  if (state.progress[mb] & what)
    return;
  state.progress[mb] |= what;
  setReady(chunk, mb, what == HasInput ? Product::Output : Product::InputGrad);
  wake(state.rank);
}

/// Queues an op that has all it needs, unless it is taken.
void ListScheduler::setReady(uint32_t chunk, uint32_t mb, Product product) {
  static constexpr OpKind kinds[] = {OpKind::Forward, OpKind::BackwardInput,
                                     OpKind::BackwardWeight};
  static constexpr uint8_t taken[] = {ForwardTaken, BackwardTaken, WeightTaken};
  ChunkState &state = chunks[chunk];
  size_t i = size_t(product);
  if (state.isReady(kinds[i], mb) && !(state.progress[mb] & taken[i]))
    state.ready[i].push(mb);
}

void ListScheduler::finish(uint32_t rank, const ChunkOp &op) {
  ChunkState &chunk = chunks[op.chunk];
  Products products = getProducts(op.kind);
  for (size_t i = products.first; i != products.first + products.count; ++i)
    for (uint32_t limit : chunk.closes[i])
      --ranks[rank].counts[limit];
  ranks[rank].memory -= schedule.memory.getFreed(op.kind, chunk.ref.stage);
  if (op.kind == OpKind::Forward)
    arrive(op.chunk, op.mb, ForwardDone);
  if (op.kind == OpKind::BackwardInput && !(chunk.progress[op.mb] & HalfDone)) {
    chunk.progress[op.mb] |= HalfDone;
    setReady(op.chunk, op.mb, Product::WeightGrad);
  }
  passOn(op);
}

/// Sends a result to the stage that needs it; at once where that is on this rank.
void ListScheduler::passOn(const ChunkOp &op) {
  const ChunkState &chunk = chunks[op.chunk];
  const Pipeline &pipeline = schedule.pipelines[chunk.ref.pipeline];
  bool isForward = op.kind == OpKind::Forward;
  uint32_t last = isForward ? pipeline.getLastStage() : pipeline.firstStage;
  if (op.kind == OpKind::BackwardWeight || chunk.ref.stage == last)
    return;
  uint32_t target = isForward ? op.chunk + 1 : op.chunk - 1;
  Event::Kind kind = isForward ? Event::InputArrives : Event::GradientArrives;
  if (chunks[target].rank == chunk.rank || costs.getTransfer() == 0)
    return arrive(target, op.mb, isForward ? HasInput : HasGradient);
  events.push({now + costs.getTransfer(), kind, target, op.mb});
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

bool ListScheduler::isStopped(uint32_t rank) const {
  for (const Stop &stop : rules.ranks[rank].stops) {
    int64_t run = 0;
    for (ChunkRef ref : stop.what.chunks)
      run += chunks[findChunk(ref)].started[getProducts(stop.what.kind).first];
    if (run >= stop.count)
      return true;
  }
  return false;
}

std::optional<size_t> ListScheduler::getFixedOpLeft(uint32_t rank) const {
  const RankState &state = ranks[rank];
  if (state.next == state.numFixed)
    return std::nullopt;
  return state.next;
}

void ListScheduler::decide(uint32_t rank) {
  if (!ranks[rank].running.empty())
    return;
  if (getFixedOpLeft(rank))
    return runFixedGroup(rank);
  if (isStopped(rank))
    return;
  for (const Choice &choice : rules.ranks[rank].choices)
    if (take(rank, choice))
      return;
}

void ListScheduler::runFixedGroup(uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  RankState &state = ranks[rank];
  // What the rules append stands behind the fixed ops: a group never reaches into it.
  size_t end = order.groupEnd(state.next);
  for (size_t op = state.next; op != end; ++op) {
    ChunkOp fixed = getFixedOp(rank, op);
    if (!chunks[fixed.chunk].isReady(fixed.kind, fixed.mb))
      return;
  }
  for (size_t op = state.next; op != end; ++op)
    start(getFixedOp(rank, op));
  events.push({now + costs.getGroup(order, state.next, end), Event::GroupEnds, rank, 0});
  state.next = end;
}

/// Takes one op for each member, in turn, or none.
bool ListScheduler::take(uint32_t rank, const Choice &choice) {
  for (const Member &member : choice.members) {
    std::optional<ChunkOp> op = pick(member);
    if (!op) {
      putBackAll(rank);
      return false;
    }
    chunks[op->chunk].ready[getProducts(op->kind).first].pop();
    start(*op);
  }
  append(rank, choice.loc);
  return true;
}

/// Writes what the rank has just taken into its order.
void ListScheduler::append(uint32_t rank, uint32_t loc) {
  RankState &state = ranks[rank];
  RankOrder &order = schedule.ranks[rank];
  size_t begin = order.size();
  uint32_t group = state.running.size() > 1 ? state.nextGroup++ : RankOrder::kAlone;
  order.enterPhase(RankOrder::kNoPhase);
  for (const ChunkOp &op : state.running) {
    ChunkState &chunk = chunks[op.chunk];
    chunk.progress[op.mb] |= kTakenBits[size_t(op.kind)];
    uint32_t firstMb = schedule.pipelines[chunk.ref.pipeline].firstMicrobatch;
    order.push(op.kind, chunk.ref.stage, firstMb + op.mb, group, loc);
  }
  events.push({now + costs.getGroup(order, begin, order.size()), Event::GroupEnds, rank, 0});
}

std::optional<ChunkOp> ListScheduler::pick(const Member &member) const {
  std::optional<ChunkOp> best;
  for (ChunkRef ref : member.chunks) {
    size_t i = findChunk(ref);
    const MicrobatchQueue &ready = chunks[i].ready[getProducts(member.kind).first];
    if (ready.empty() || (best && ready.top() >= best->mb) || findHold(member.kind, chunks[i]))
      continue;
    best = ChunkOp{member.kind, uint32_t(i), ready.top()};
  }
  return best;
}

std::optional<ListScheduler::Hold> ListScheduler::findHold(OpKind kind,
                                                           const ChunkState &chunk) const {
  const RankState &state = ranks[chunk.rank];
  Products products = getProducts(kind);
  for (size_t i = products.first; i != products.first + products.count; ++i)
    for (uint32_t limit : chunk.opens[i])
      if (state.counts[limit] >= rules.ranks[chunk.rank].limits[limit].most)
        return Hold{&rules.ranks[chunk.rank].limits[limit], 0};
  int64_t taken = schedule.memory.getTaken(kind, chunk.ref.stage);
  std::optional<int64_t> most = schedule.memory.getLimit(chunk.rank);
  if (most && taken > 0 && state.memory + taken > *most)
    return Hold{nullptr, state.memory + taken};
  return std::nullopt;
}

void ListScheduler::start(const ChunkOp &op) {
  count(op, +1);
  ranks[chunks[op.chunk].rank].running.push_back(op);
}

/// Undoes the starts of a choice that lacks a member.
void ListScheduler::putBackAll(uint32_t rank) {
  for (const ChunkOp &op : ranks[rank].running) {
    count(op, -1);
    chunks[op.chunk].ready[getProducts(op.kind).first].push(op.mb);
  }
  ranks[rank].running.clear();
}

/// The start of an op in all counts, or its undoing.
void ListScheduler::count(const ChunkOp &op, int by) {
  ChunkState &chunk = chunks[op.chunk];
  RankState &state = ranks[chunk.rank];
  Products products = getProducts(op.kind);
  for (size_t i = products.first; i != products.first + products.count; ++i) {
    chunk.started[i] += by;
    for (uint32_t limit : chunk.opens[i])
      state.counts[limit] += by;
  }
  state.memory += by * schedule.memory.getTaken(op.kind, chunk.ref.stage);
}
