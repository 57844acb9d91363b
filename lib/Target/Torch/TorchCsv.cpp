//===- TorchCsv.cpp - schedules in PyTorch's action grammar -----------------===//

#include "dualpipe/Target/TorchCsv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

using namespace dualpipe;

namespace {

/// One line: the actions of one rank.
class LineWriter {
public:
  LineWriter(const RankOrder &order, bool legacy, std::string &out)
      : order(order), legacy(legacy), out(out) {}

  void writeGroup(size_t begin, size_t end);
  void writeTransfer(const TimelineEntry &entry);
  void writeReductions(size_t begin, size_t end, const std::vector<size_t> &lastGradient);

private:
  /// Puts a comma between cells.
  void openCell() {
    if (!isFirst)
      out += ',';
    isFirst = false;
  }
  void writeOp(size_t op);
  std::string_view getName(OpKind kind) const;

  const RankOrder &order;
  bool legacy;
  std::string &out;
  bool isFirst = true;
};

} // namespace

std::string_view LineWriter::getName(OpKind kind) const {
  switch (kind) {
  case OpKind::Forward:
    return "F";
  case OpKind::Backward:
    return legacy ? "BW" : "B";
  case OpKind::BackwardInput:
    return legacy ? "B" : "I";
  case OpKind::BackwardWeight:
    return "W";
  }
  return "";
}

void LineWriter::writeOp(size_t op) {
  fmt::format_to(std::back_inserter(out), "{}{}{}", order.stage[op], getName(order.kind[op]),
                 order.microbatch[op]);
}

void LineWriter::writeGroup(size_t begin, size_t end) {
  openCell();
  if (end - begin == 1)
    return writeOp(begin);
  for (size_t op = begin; op != end; ++op) {
    out += op == begin ? '(' : ';';
    writeOp(op);
  }
  out += ")OVERLAP_F_B";
}

/// PyTorch names a transfer by the stage on this rank, at either end.
void LineWriter::writeTransfer(const TimelineEntry &entry) {
  openCell();
  fmt::format_to(std::back_inserter(out), "{}{}_{}{}", order.stage[entry.op],
                 entry.kind == TimelineEntry::Kind::Send ? "SEND" : "RECV",
                 entry.isGrad ? 'B' : 'F', entry.microbatch);
}

/// PyTorch reduces a stage's gradients over its data-parallel copies as soon as the last
/// micro-batch has added to them.
void LineWriter::writeReductions(size_t begin, size_t end,
                                 const std::vector<size_t> &lastGradient) {
  for (size_t op = begin; op != end; ++op)
    if (lastGradient[order.stage[op]] == op) {
      openCell();
      fmt::format_to(std::back_inserter(out), "{}REDUCE_GRAD", order.stage[op]);
    }
}

/// By stage, the op that completes its gradient on the rank; the number of ops where none
/// does.
static std::vector<size_t> findLastGradients(const RankOrder &order, uint32_t numStages) {
  std::vector<size_t> last(numStages, order.size());
  for (size_t op = 0; op != order.size(); ++op)
    if (order.kind[op] == OpKind::Backward || order.kind[op] == OpKind::BackwardWeight)
      last[order.stage[op]] = op;
  return last;
}

std::string dualpipe::printTorchCsv(const Schedule &schedule, const TorchWriteOptions &options) {
  std::string out;
  for (const RankOrder &order : schedule.ranks) {
    LineWriter line(order, options.legacy, out);
    for (size_t begin = 0, end; begin != order.size(); begin = end) {
      end = order.groupEnd(begin);
      line.writeGroup(begin, end);
    }
    out += '\n';
  }
  return out;
}

std::string dualpipe::printTorchCsvComms(const Timeline &timeline,
                                         const TorchWriteOptions &options) {
  const Schedule &schedule = timeline.getIndex().getSchedule();
  std::string out;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    std::vector<size_t> lastGradient = findLastGradients(order, schedule.numStages);
    LineWriter line(order, options.legacy, out);
    for (const TimelineEntry &entry : timeline.project(rank)) {
      if (entry.kind == TimelineEntry::Kind::Send || entry.kind == TimelineEntry::Kind::Recv)
        line.writeTransfer(entry);
      if (entry.kind != TimelineEntry::Kind::Compute)
        continue;
      size_t end = order.groupEnd(entry.op);
      line.writeGroup(entry.op, end);
      if (!options.legacy)
        line.writeReductions(entry.op, end, lastGradient);
    }
    out += '\n';
  }
  return out;
}

/// "0 and 3", "0 to 3", "0, 2 and 5": ascending ranks, of many the first ones.
static std::string listRanks(const std::vector<uint32_t> &ranks) {
  constexpr size_t kMaxShown = 8;
  bool isRun = ranks.back() - ranks.front() == ranks.size() - 1;
  if (isRun && ranks.size() > 2)
    return fmt::format("{} to {}", ranks.front(), ranks.back());
  if (ranks.size() > kMaxShown)
    return fmt::format("{} and {} more", fmt::join(ranks.begin(), ranks.begin() + kMaxShown, ", "),
                       ranks.size() - kMaxShown);
  return fmt::format("{} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

void dualpipe::warnWhatTorchCannotRun(const Schedule &schedule, DiagnosticSink &sink) {
  StageCopies copies = getStageCopies(schedule);
  for (uint32_t stage = 0; stage != copies.size(); ++stage)
    if (copies[stage].size() > 1) {
      sink.warning(schedule.loc,
                   fmt::format("PyTorch cannot run this schedule: stage {} is on ranks {}, and "
                               "PyTorch keeps a stage on one rank, the same for all micro-batches; "
                               "dualpipe-opt reads the file",
                               stage, listRanks(copies[stage])));
      return;
    }
}
