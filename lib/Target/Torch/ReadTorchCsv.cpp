//===- ReadTorchCsv.cpp - from PyTorch's action grammar to order tables -----===//

#include "dualpipe/Target/ReadTorchCsv.h"
#include "Actions.h"
#include "InferPipelines.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

using namespace dualpipe;
using namespace dualpipe::torch;

//===----------------------------------------------------------------------===//
// The dialect
//===----------------------------------------------------------------------===//

namespace {

class DialectResolver {
public:
  DialectResolver(Actions &actions, DiagnosticSink &sink) : actions(actions), sink(sink) {}

  /// Rewrites the actions to the current grammar.
  bool run(TorchDialect dialect);

private:
  const Action *findFirst(ActionType type) const;
  bool rejectAmbiguity() const;
  bool rewriteLegacy(const Action *firstBW);

  Actions &actions;
  DiagnosticSink &sink;
};

} // namespace

const Action *DialectResolver::findFirst(ActionType type) const {
  for (const std::vector<Action> &rank : actions)
    for (const Action &action : rank)
      if (action.type == type)
        return &action;
  return nullptr;
}

/// A stage and micro-batch with B and W, and without I: B is the input half in fact.
bool DialectResolver::rejectAmbiguity() const {
  if (findFirst(ActionType::I))
    return true;
  std::map<std::pair<uint32_t, uint32_t>, const Action *> backwards;
  for (const std::vector<Action> &rank : actions)
    for (const Action &action : rank)
      if (action.type == ActionType::B)
        backwards.try_emplace({action.stage, action.microbatch}, &action);
  for (const std::vector<Action> &rank : actions)
    for (const Action &action : rank) {
      auto it = backwards.find({action.stage, action.microbatch});
      if (action.type != ActionType::W || it == backwards.end())
        continue;
      sink.error(action.loc,
                 fmt::format("{}: its stage and micro-batch have a B too, and a full backward "
                             "leaves no weight half; if B is the input half, as in files of about "
                             "2024, pass --csv-dialect=legacy",
                             describe(action)))
          .note(it->second->loc, fmt::format("{} is here", describe(*it->second)));
      return false;
    }
  return true;
}

bool DialectResolver::rewriteLegacy(const Action *firstBW) {
  if (const Action *half = findFirst(ActionType::I)) {
    Diagnostic &error = sink.error(
        half->loc, fmt::format("{}: the older dialect, of BW, has no I: it writes B for the input "
                               "half",
                               describe(*half)));
    if (firstBW)
      error.note(firstBW->loc, fmt::format("{} is here", describe(*firstBW)));
    return false;
  }
  for (std::vector<Action> &rank : actions)
    for (Action &action : rank)
      action.type = action.type == ActionType::B    ? ActionType::I
                    : action.type == ActionType::BW ? ActionType::B
                                                    : action.type;
  return true;
}

bool DialectResolver::run(TorchDialect dialect) {
  const Action *firstBW = findFirst(ActionType::BW);
  if (dialect == TorchDialect::Legacy)
    return rewriteLegacy(firstBW);
  if (!firstBW)
    return dialect == TorchDialect::Current || rejectAmbiguity();
  if (dialect == TorchDialect::Current) {
    sink.error(firstBW->loc, fmt::format("{}: BW is of the older dialect, in which B is the input "
                                         "half: pass --csv-dialect=legacy",
                                         describe(*firstBW)));
    return false;
  }
  std::string asWritten = describe(*firstBW);
  if (!rewriteLegacy(firstBW))
    return false;
  sink.remark(firstBW->loc, asWritten + ": read as the older dialect, in which B is the input half "
                                        "and BW the full backward");
  return true;
}

//===----------------------------------------------------------------------===//
// Actions that stand twice, and those without a counterpart
//===----------------------------------------------------------------------===//

/// An action that does the same work as one before it, on whichever rank.
static bool rejectDuplicates(const Actions &actions, DiagnosticSink &sink) {
  std::vector<const Action *> all;
  for (const std::vector<Action> &rank : actions)
    for (const Action &action : rank)
      if (isCompute(action.type) || isTransfer(action.type))
        all.push_back(&action);
  auto key = [](const Action *a) { return std::tie(a->type, a->stage, a->microbatch); };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Action *a, const Action *b) { return key(a) < key(b); });
  constexpr size_t kMaxFindings = 20;
  size_t found = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (key(all[i]) != key(all[i - 1]) || ++found > kMaxFindings)
      continue;
    sink.error(all[i]->loc, fmt::format("{}: the action stands a second time", describe(*all[i])))
        .note(all[i - 1]->loc, fmt::format("{} is here", describe(*all[i - 1])));
  }
  if (found > kMaxFindings)
    sink.error(all.front()->loc, fmt::format("{} more actions stand a second time and are not "
                                             "shown",
                                             found - kMaxFindings));
  return found == 0;
}

/// Says once for each kind of action that has no counterpart here that it is left out.
static void warnOfLeftOut(const Actions &actions, DiagnosticSink &sink) {
  auto warn = [&](auto isMeant, const char *what, const char *why) {
    size_t count = 0;
    const Action *first = nullptr;
    for (const std::vector<Action> &rank : actions)
      for (const Action &action : rank)
        if (isMeant(action.type) && count++ == 0)
          first = &action;
    if (first)
      sink.warning(first->loc,
                   fmt::format("{}: {} {} left out: {}", describe(*first), count, what, why));
  };
  warn([](ActionType t) { return t == ActionType::Unshard || t == ActionType::Reshard; },
       "UNSHARD and RESHARD actions are", "parameters are not sharded here");
  warn([](ActionType t) { return t == ActionType::ReduceGrad; }, "REDUCE_GRAD actions are",
       "where gradients are summed follows from the copies of a stage");
}

//===----------------------------------------------------------------------===//
// Shared stages
//===----------------------------------------------------------------------===//

Result<SharedStages> dualpipe::parseSharedStages(std::string_view text) {
  auto fail = [&](const std::string &why) {
    return Status::failure(fmt::format("'{}': {}", text, why));
  };
  SharedStages ranges;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    uint32_t first = 0, last = 0;
    auto [dash, error] = std::from_chars(at, end, first);
    if (error != std::errc() || dash == end || *dash != '-')
      return fail("expected ranges of stages like 0-3,4-7");
    auto [next, lastError] = std::from_chars(dash + 1, end, last);
    if (lastError != std::errc() || (next != end && *next != ','))
      return fail("expected ranges of stages like 0-3,4-7");
    if (last < first || (!ranges.empty() && first <= ranges.back().second))
      return fail("expected ascending ranges of stages that do not overlap");
    if (!ranges.empty() && last - first != ranges[0].second - ranges[0].first)
      return fail(fmt::format("stages {} to {} are {}, expected {}, as in the first range", first,
                              last, uint64_t(last) - first + 1,
                              uint64_t(ranges[0].second) - ranges[0].first + 1));
    ranges.emplace_back(first, last);
    if (next == end)
      break;
    at = next + 1;
  }
  if (ranges.size() < 2)
    return fail("expected at least two ranges of stages");
  return ranges;
}

namespace {

/// Numbers the stages of every range like those of the first. Where ranges use the same
/// micro-batches, each gets its own numbers, after those of the range before.
class StageSharing {
public:
  StageSharing(const SharedStages &ranges, Actions &actions)
      : ranges(ranges), actions(actions), uses(ranges.size()) {}

  bool run(SourceLoc loc, DiagnosticSink &sink);

private:
  /// The micro-batches that the actions of a range name, and how far they are moved.
  struct Use {
    uint64_t least = ~uint64_t(0), beyond = 0, shift = 0;
  };

  template <typename Visit> void forEach(Visit visit);
  bool collect(SourceLoc loc, DiagnosticSink &sink);
  bool place(SourceLoc loc, DiagnosticSink &sink);

  const SharedStages &ranges;
  Actions &actions;
  std::vector<Use> uses; ///< by range
};

} // namespace

/// Calls `visit` with each action that has a micro-batch and is on a stage of a range, and
/// the number of the range.
template <typename Visit> void StageSharing::forEach(Visit visit) {
  for (std::vector<Action> &rank : actions)
    for (Action &action : rank) {
      if (!isCompute(action.type) && !isTransfer(action.type))
        continue;
      auto holds = [&](const auto &range) {
        return action.stage >= range.first && action.stage <= range.second;
      };
      auto range = std::find_if(ranges.begin(), ranges.end(), holds);
      if (range != ranges.end())
        visit(action, size_t(range - ranges.begin()));
    }
}

bool StageSharing::collect(SourceLoc loc, DiagnosticSink &sink) {
  forEach([&](const Action &action, size_t range) {
    uses[range].least = std::min<uint64_t>(uses[range].least, action.microbatch);
    uses[range].beyond = std::max<uint64_t>(uses[range].beyond, action.microbatch + 1);
  });
  for (size_t i = 0; i != ranges.size(); ++i)
    if (uses[i].beyond == 0) {
      sink.error(loc, fmt::format("--share: stages {} to {} are in no action of the file",
                                  ranges[i].first, ranges[i].second));
      return false;
    }
  return true;
}

/// Moves the micro-batches of a range behind those of the range before.
bool StageSharing::place(SourceLoc loc, DiagnosticSink &sink) {
  for (size_t i = 1; i != ranges.size(); ++i) {
    uint64_t end = uses[i - 1].beyond + uses[i - 1].shift;
    if (uses[i].least < end)
      uses[i].shift = end - uses[i].least;
    uint64_t last = uses[i].beyond + uses[i].shift - 1;
    if (last <= kMaxNumber)
      continue;
    sink.error(loc, fmt::format("--share: micro-batch {} of stages {} to {} would be number {}, "
                                "expected at most {}: let the ranges use fewer micro-batches",
                                uses[i].beyond - 1, ranges[i].first, ranges[i].second, last,
                                kMaxNumber));
    return false;
  }
  return true;
}

bool StageSharing::run(SourceLoc loc, DiagnosticSink &sink) {
  if (!collect(loc, sink) || !place(loc, sink))
    return false;
  forEach([&](Action &action, size_t range) {
    action.stage -= ranges[range].first - ranges[0].first;
    action.microbatch += uint32_t(uses[range].shift);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

static OpKind getOpKind(ActionType type) {
  switch (type) {
  case ActionType::F:
    return OpKind::Forward;
  case ActionType::I:
    return OpKind::BackwardInput;
  case ActionType::W:
    return OpKind::BackwardWeight;
  default:
    return OpKind::Backward;
  }
}

static void addAction(const Action &action, Schedule &schedule) {
  RankOrder &order = schedule.ranks[action.rank];
  if (!isCompute(action.type) && !isTransfer(action.type))
    return;
  uint32_t loc = uint32_t(schedule.locations.size());
  schedule.locations.push_back(action.loc);
  if (isCompute(action.type)) {
    order.push(getOpKind(action.type), action.stage, action.microbatch, action.group, loc);
    schedule.training |= action.type != ActionType::F;
    return;
  }
  schedule.ownsTransfers = true;
  order.pushTransfer(action.type == ActionType::SendF || action.type == ActionType::SendB,
                     action.type == ActionType::SendB || action.type == ActionType::RecvB,
                     action.stage, action.microbatch, loc);
}

static bool fillRanks(const Actions &actions, Schedule &schedule, DiagnosticSink &sink) {
  schedule.training = false;
  schedule.numRanks = uint32_t(actions.size());
  schedule.ranks.resize(actions.size());
  bool isComplete = true;
  for (uint32_t rank = 0; rank != actions.size(); ++rank) {
    for (const Action &action : actions[rank])
      addAction(action, schedule);
    if (schedule.ranks[rank].size() != 0)
      continue;
    isComplete = false;
    sink.error({0, rank + 1, 1}, fmt::format("rank {}: the line has no F, I, W or B: expected one "
                                             "line for each rank, with what it computes",
                                             rank));
  }
  return isComplete;
}

bool dualpipe::readTorchCsv(std::string_view text, const TorchReadOptions &options,
                            Schedule &schedule, DiagnosticSink &sink) {
  Schedule result;
  result.name = options.name;
  result.files = {options.file};
  result.loc = {0, 1, 1};
  result.locations = {result.loc};

  // 1. The cells.
  size_t before = sink.numErrors();
  Actions actions = parseActions(text, sink);
  if (sink.numErrors() != before)
    return false;
  if (actions.empty()) {
    sink.error(result.loc, "the file is empty: expected one line for each rank");
    return false;
  }
  if (!rejectDuplicates(actions, sink))
    return false;
  warnOfLeftOut(actions, sink);

  // 2. What they mean.
  if (!DialectResolver(actions, sink).run(options.dialect))
    return false;
  for (const SharedStages &ranges : options.shared)
    if (!StageSharing(ranges, actions).run(result.loc, sink))
      return false;

  // 3. The tables.
  if (!fillRanks(actions, result, sink) || !inferPipelines(actions, result, sink))
    return false;
  if (!result.training)
    sink.remark(result.loc, "the file has no backward: forward only");
  schedule = std::move(result);
  return true;
}
