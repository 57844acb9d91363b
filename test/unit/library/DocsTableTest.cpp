//===- DocsTableTest.cpp - the numbers in docs/schedules.md -----------------===//
//
// The last three columns of the table are measured: idle time and peak at two sizes,
// and the lines of the program without comments. A row that is out of date is shown as
// it has to be.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// `value` / `parts`, with up to two places.
std::string divide(int64_t value, uint32_t parts) {
  std::ostringstream text;
  text << double(value) / parts;
  return text.str();
}

/// "idle · peak": of the worst rank, in units of a micro-batch through a whole rank.
std::string describe(const Entry &entry, const Example &example, Size size) {
  AsapResult result = measure(example.instantiate(size));
  uint32_t parts = entry.getParts(entry.values.front());
  return divide(getMostIdle(result), parts) + " · " + divide(getHighestPeak(result), parts);
}

/// Lines with more on them than blanks and a comment.
unsigned countLines(const std::string &name) {
  std::ifstream file(std::string(DUALPIPE_SOURCE_DIR) + "/examples/" + name + ".pipe");
  unsigned count = 0;
  for (std::string line; std::getline(file, line);) {
    size_t begin = line.find_first_not_of(' ');
    count += begin != std::string::npos && line.compare(begin, 2, "//") != 0;
  }
  return count;
}

/// The rows of the table by schedule, without what is measured.
std::map<std::string, std::string> readRows() {
  std::ifstream file(DUALPIPE_SOURCE_DIR "/docs/schedules.md");
  std::map<std::string, std::string> rows;
  const std::string begin = "| [`";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, begin.size(), begin) == 0)
      rows[line.substr(begin.size(), line.find('`', begin.size()) - begin.size())] = line;
  }
  return rows;
}

TEST(DocsTable, SaysWhatIsMeasured) {
  std::map<std::string, std::string> rows = readRows();
  for (const Entry &entry : getLibrary()) {
    SCOPED_TRACE(entry.name);
    Example example(entry.name);
    std::string measured = "| " + describe(entry, example, {4, 8}) + " | " +
                           describe(entry, example, {8, 20}) + " | " +
                           std::to_string(countLines(entry.name)) + " |";
    std::string row = rows[entry.name];
    EXPECT_TRUE(row.size() > measured.size() &&
                row.compare(row.size() - measured.size(), measured.size(), measured) == 0)
        << "expected the row to end with\n  " << measured << "\ngot\n  " << row;
  }
  EXPECT_EQ(rows.size(), getLibrary().size());
}

} // namespace
