//===- HeaderTest.cpp - the timelines above the schedules -------------------===//
//
// The comment at the head of a file shows a small case. It is drawn again from the
// schedule and compared, so that it never goes out of date.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Schedule/Timeline.h"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <regex>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// What the head of a file says.
struct Header {
  Size size{0, 0};
  int64_t columns = -1, idle = -1;
  std::vector<std::string> rows; ///< by rank, without "rank r  "
  bool isElsewhere = false;      ///< the timeline stands in another file
};

Header readHeader(const std::string &name) {
  static const std::regex size("(\\d+) ranks, (\\d+) (micro-batches|sequences in (\\d+) slices)");
  static const std::regex total("takes (\\d+) columns, of which every rank idles (\\d+)");
  static const std::regex row("//   rank (\\d+)  (.*)");
  std::ifstream file(std::string(DUALPIPE_SOURCE_DIR) + "/examples/" + name + ".pipe");
  Header header;
  for (std::string line; std::getline(file, line) && line != "pipe 1";) {
    std::smatch match;
    if (std::regex_match(line, match, row))
      header.rows.push_back(match[2]);
    if (std::regex_search(line, match, total))
      header.columns = std::stoi(match[1]), header.idle = std::stoi(match[2]);
    if (std::regex_search(line, match, size) && header.size.ranks == 0)
      header.size = {uint32_t(std::stoul(match[1])),
                     uint32_t(std::stoul(match[2])) *
                         (match[4].matched ? uint32_t(std::stoul(match[4])) : 1)};
    header.isElsewhere |= line.find("timeline: ") != std::string::npos;
  }
  return header;
}

/// Draws the ops of one rank, a cell for each unit of time.
class RowDrawer {
public:
  RowDrawer(const Timeline &timeline, uint32_t rank, bool slices)
      : timeline(timeline), schedule(timeline.getIndex().getSchedule()), rank(rank), slices(slices),
        width(slices ? 4 : 3) {}

  std::string draw() {
    const RankOrder &order = schedule.ranks[rank];
    for (size_t begin = 0, end; begin != order.size(); begin = end) {
      end = order.groupEnd(begin);
      idleUntil(timeline.getStart(rank, begin));
      add(describe(begin, end), timeline.getEnd(rank, begin) - now, end - begin == 1);
    }
    idleUntil(timeline.getMakespan());
    return row.substr(0, row.find_last_not_of(' ') + 1);
  }

private:
  void idleUntil(Ticks time) {
    while (now < time)
      add(".", Costs::kTicksPerUnit, false);
  }
  void add(std::string text, Ticks duration, bool hasTail) {
    size_t cells = static_cast<size_t>(duration / Costs::kTicksPerUnit) * width;
    if (hasTail && duration > Costs::kTicksPerUnit)
      text.resize(cells - 1, '-');
    text.resize(cells, ' ');
    row += text;
    now += duration;
  }
  std::string describe(size_t begin, size_t end) const {
    std::string text;
    for (size_t op = begin; op != end; ++op)
      text += (op == begin ? "" : " ") + describe(op);
    return end - begin == 1 ? text : "[" + text + "]";
  }
  /// Capitals for chunks on the way down, small letters for the others.
  std::string describe(size_t op) const {
    const RankOrder &order = schedule.ranks[rank];
    char letter = getLetter(order.kind[op]);
    if (order.stage[op] / schedule.numRanks % 2 == 1)
      letter = static_cast<char>(std::tolower(letter));
    uint32_t mb = order.microbatch[op];
    if (!slices)
      return letter + std::to_string(mb);
    return letter + std::to_string(mb / 2) + (mb % 2 == 0 ? 'a' : 'b');
  }

  const Timeline &timeline;
  const Schedule &schedule;
  uint32_t rank;
  bool slices;
  size_t width;
  std::string row;
  Ticks now = 0;
};

class HeaderOf : public testing::TestWithParam<Entry> {};

TEST_P(HeaderOf, ShowsTheSchedule) {
  Header header = readHeader(GetParam().name);
  ASSERT_NE(header.size.ranks, 0u) << "no size is named";
  Schedule schedule = Example(GetParam().name).instantiate(header.size);
  DiagnosticSink sink;
  OpIndex index = checkSchedule(schedule, sink);
  Timeline timeline(index, schedule.planCosts);
  bool slices = GetParam().param && GetParam().param == std::string("slices");
  std::vector<std::string> rows;
  for (uint32_t rank = 0; rank != header.size.ranks; ++rank)
    rows.push_back(RowDrawer(timeline, rank, slices).draw());
  EXPECT_EQ(header.rows, rows);
  EXPECT_EQ(header.columns * Costs::kTicksPerUnit, timeline.getMakespan());
  EXPECT_EQ(header.idle, getMostIdle(measure(schedule)));
}

INSTANTIATE_TEST_SUITE_P(Library, HeaderOf, testing::ValuesIn(selectEntries([](const Entry &entry) {
                           return !readHeader(entry.name).isElsewhere;
                         })),
                         nameOfTest);

} // namespace
