//===- Diff.cpp - how two schedules differ ----------------------------------===//

#include "dualpipe/Schedule/Diff.h"
#include "dualpipe/Schedule/Describe.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

using namespace dualpipe;

namespace {

/// Differences of one kind that are shown; the rest is counted.
constexpr size_t kMaxShown = 10;

/// What is done for one stage and micro-batch: a bit for each kind of op, and one for
/// each that is a member of a fused group.
struct Work {
  uint32_t stage;
  uint32_t microbatch;
  uint8_t ops;

  static constexpr unsigned kFusedShift = 4;
};

class Comparison {
public:
  Comparison(const Schedule &a, const Schedule &b) : a(a), b(b) {}

  std::vector<std::string> run();

private:
  void add(const char *kind, std::string text);
  void closeKind(const char *kind);

  void compareSizes();
  void comparePlacement();
  void comparePlacement(uint32_t stage);
  void compareWork();
  void compareOrder(uint32_t rank);
  void compareTransfers(uint32_t rank);

  const Schedule &a, &b;
  std::vector<std::string> lines;
  size_t found = 0; ///< of the kind that is being compared
};

} // namespace

void Comparison::add(const char *kind, std::string text) {
  if (++found <= kMaxShown)
    lines.push_back(fmt::format("{}: {}", kind, text));
}

void Comparison::closeKind(const char *kind) {
  if (found > kMaxShown)
    lines.push_back(fmt::format("{}: {} more differences", kind, found - kMaxShown));
  found = 0;
}

void Comparison::compareSizes() {
  auto compare = [&](const char *what, uint32_t ofA, uint32_t ofB) {
    if (ofA != ofB)
      add("sizes", fmt::format("{} {} in a, {} in b", ofA, what, ofB));
  };
  compare("ranks", a.numRanks, b.numRanks);
  compare("stages", a.numStages, b.numStages);
  compare("micro-batches", a.numMicrobatches, b.numMicrobatches);
  if (a.training != b.training)
    add("sizes", fmt::format("{} runs forward only", a.training ? 'b' : 'a'));
  closeKind("sizes");
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

static std::optional<uint32_t> findRank(const Schedule &schedule, uint32_t stage, uint32_t mb) {
  size_t p = schedule.findPipeline(mb);
  if (p == schedule.pipelines.size() || !schedule.pipelines[p].holdsStage(stage))
    return std::nullopt;
  return schedule.pipelines[p].getRank(stage);
}

/// One line for each run of micro-batches for which the stage stands elsewhere.
void Comparison::comparePlacement(uint32_t stage) {
  auto name = [](std::optional<uint32_t> rank) {
    return rank ? fmt::format("on rank {}", *rank) : std::string("nowhere");
  };
  uint32_t count = std::min(a.numMicrobatches, b.numMicrobatches);
  for (uint32_t first = 0, mb = 0; first != count; first = mb) {
    auto ofA = findRank(a, stage, first), ofB = findRank(b, stage, first);
    while (mb != count && findRank(a, stage, mb) == ofA && findRank(b, stage, mb) == ofB)
      ++mb;
    if (ofA != ofB)
      add("placement", fmt::format("stage {} is {} in a, {} in b for micro-batches {} to {}", stage,
                                   name(ofA), name(ofB), first, mb - 1));
  }
}

void Comparison::comparePlacement() {
  for (uint32_t stage = 0; stage != std::min(a.numStages, b.numStages); ++stage)
    comparePlacement(stage);
  closeKind("placement");
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static std::vector<Work> collectWork(const Schedule &schedule) {
  std::vector<Work> work;
  work.reserve(schedule.getNumOps());
  for (const RankOrder &order : schedule.ranks)
    for (size_t op = 0; op != order.size(); ++op) {
      unsigned bit = unsigned(order.kind[op]);
      if (order.group[op] != RankOrder::kAlone)
        bit += Work::kFusedShift;
      work.push_back({order.stage[op], order.microbatch[op], uint8_t(1u << bit)});
    }
  auto key = [](const Work &w) { return std::pair(w.stage, w.microbatch); };
  std::sort(work.begin(), work.end(),
            [&](const Work &x, const Work &y) { return key(x) < key(y); });
  size_t last = 0;
  for (size_t i = 1; i < work.size(); ++i) {
    if (key(work[i]) == key(work[last]))
      work[last].ops |= work[i].ops;
    else
      work[++last] = work[i];
  }
  if (!work.empty())
    work.resize(last + 1);
  return work;
}

static std::string describeWork(uint8_t ops) {
  if (ops == 0)
    return "nothing";
  std::string text;
  for (unsigned kind = 0; kind != Work::kFusedShift; ++kind) {
    bool isAlone = ops >> kind & 1, isFused = ops >> (kind + Work::kFusedShift) & 1;
    if (!isAlone && !isFused)
      continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", isFused ? "fused " : "",
                        getKeyword(OpKind(kind)));
  }
  return text;
}

/// Stages and micro-batches with the same difference are one line, at the first of them.
void Comparison::compareWork() {
  struct Difference {
    Work ofA, ofB;
    size_t count;
  };
  std::vector<Difference> differences;
  auto note = [&](const Work &ofA, const Work &ofB) {
    for (Difference &known : differences)
      if (known.ofA.ops == ofA.ops && known.ofB.ops == ofB.ops) {
        ++known.count;
        return;
      }
    differences.push_back({ofA, ofB, 0});
  };

  std::vector<Work> ofA = collectWork(a), ofB = collectWork(b);
  auto key = [](const Work &w) { return std::pair(w.stage, w.microbatch); };
  size_t i = 0, j = 0;
  while (i != ofA.size() || j != ofB.size()) {
    bool onlyA = j == ofB.size() || (i != ofA.size() && key(ofA[i]) < key(ofB[j]));
    bool onlyB = i == ofA.size() || (j != ofB.size() && key(ofB[j]) < key(ofA[i]));
    Work inA = onlyB ? Work{ofB[j].stage, ofB[j].microbatch, 0} : ofA[i];
    Work inB = onlyA ? Work{ofA[i].stage, ofA[i].microbatch, 0} : ofB[j];
    if (inA.ops != inB.ops)
      note(inA, inB);
    i += !onlyB;
    j += !onlyA;
  }
  for (const auto &[inA, inB, others] : differences)
    add("work", fmt::format("stage {}, micro-batch {}{}: {} in a, {} in b", inA.stage,
                            inA.microbatch, others ? fmt::format(" (and {} more)", others) : "",
                            describeWork(inA.ops), describeWork(inB.ops)));
  closeKind("work");
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

static std::string describePlace(const Schedule &schedule, uint32_t loc) {
  SourceLoc place = loc < schedule.locations.size() ? schedule.locations[loc] : SourceLoc();
  if (!place.isValid() || place.file >= schedule.files.size())
    return "";
  return fmt::format(" ({}:{}:{})", schedule.files[place.file], place.line, place.column);
}

static std::string describeGroup(const Schedule &schedule, uint32_t rank, size_t begin) {
  const RankOrder &order = schedule.ranks[rank];
  if (begin == order.size())
    return "nothing";
  std::string text;
  size_t end = order.groupEnd(begin);
  for (size_t op = begin; op != end; ++op)
    text += (op == begin ? (end - begin > 1 ? "fused " : "") : " with ") + describe(order, op);
  return text + describePlace(schedule, order.loc[begin]);
}

static bool isSameGroup(const RankOrder &a, const RankOrder &b, size_t begin) {
  if (begin == a.size() || begin == b.size() || a.groupEnd(begin) != b.groupEnd(begin))
    return false;
  for (size_t op = begin; op != a.groupEnd(begin); ++op)
    if (a.kind[op] != b.kind[op] || a.stage[op] != b.stage[op] ||
        a.microbatch[op] != b.microbatch[op])
      return false;
  return true;
}

/// Groups that are equal are equally long, so the same index is the same place in both.
void Comparison::compareOrder(uint32_t rank) {
  const RankOrder &ofA = a.ranks[rank], &ofB = b.ranks[rank];
  size_t place = 1, op = 0;
  for (; op != ofA.size() || op != ofB.size(); op = ofA.groupEnd(op), ++place)
    if (!isSameGroup(ofA, ofB, op)) {
      add("order", fmt::format("rank {} differs from place {} on: {} in a, {} in b", rank, place,
                               describeGroup(a, rank, std::min(op, ofA.size())),
                               describeGroup(b, rank, std::min(op, ofB.size()))));
      return;
    }
}

static std::string describeTransfer(const Schedule &schedule, uint32_t rank, size_t i) {
  const RankOrder &order = schedule.ranks[rank];
  if (i >= order.transfers.size())
    return "nothing";
  const RankOrder::Transfer &end = order.transfers[i];
  return fmt::format("{} before op {}{}", describe(end), end.before + 1,
                     describePlace(schedule, end.loc));
}

void Comparison::compareTransfers(uint32_t rank) {
  const auto &ofA = a.ranks[rank].transfers, &ofB = b.ranks[rank].transfers;
  auto isSame = [](const RankOrder::Transfer &x, const RankOrder::Transfer &y) {
    return x.isSend == y.isSend && x.isGrad == y.isGrad && x.stage == y.stage &&
           x.microbatch == y.microbatch && x.before == y.before;
  };
  size_t same =
      std::mismatch(ofA.begin(), ofA.end(), ofB.begin(), ofB.end(), isSame).first - ofA.begin();
  if (same != ofA.size() || same != ofB.size())
    add("transfers",
        fmt::format("rank {} differs from transfer {} on: {} in a, {} in b", rank, same + 1,
                    describeTransfer(a, rank, same), describeTransfer(b, rank, same)));
}

std::vector<std::string> Comparison::run() {
  compareSizes();
  comparePlacement();
  compareWork();
  uint32_t ranks = std::min(a.numRanks, b.numRanks);
  for (uint32_t rank = 0; rank != ranks; ++rank)
    compareOrder(rank);
  closeKind("order");
  for (uint32_t rank = 0; a.ownsTransfers && b.ownsTransfers && rank != ranks; ++rank)
    compareTransfers(rank);
  closeKind("transfers");
  return std::move(lines);
}

std::vector<std::string> dualpipe::diffSchedules(const Schedule &a, const Schedule &b) {
  return Comparison(a, b).run();
}
