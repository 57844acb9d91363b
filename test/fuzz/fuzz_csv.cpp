//===- fuzz_csv.cpp - any text as a schedule in PyTorch's grammar ------------===//
//
// The first byte says how the text behind it is read: the dialect, and whether stages share
// weights. What is read is checked and timed. Sanitizers watch; what this file checks itself:
//
// - failure comes with a finding, and success without;
// - a legal schedule is the same when it is written and read again, with its transfers and
//   without;
// - and so is its explicit program.
//
// scripts/fuzz.sh builds and runs it.
//
//===----------------------------------------------------------------------===//

#include "Fuzzing.h"
#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Schedule/Timeline.h"
#include "dualpipe/Target/ReadTorchCsv.h"
#include "dualpipe/Target/TorchCsv.h"

using namespace dualpipe;
using namespace dualpipe::fuzzing;

namespace {

TorchReadOptions getOptions(uint8_t first) {
  constexpr TorchDialect dialects[] = {TorchDialect::Auto, TorchDialect::Current,
                                       TorchDialect::Legacy, TorchDialect::Auto};
  TorchReadOptions options;
  options.dialect = dialects[first % 4];
  if (first & 4)
    options.shared.push_back({{0, 1}, {2, 3}});
  if (first & 8)
    options.shared.push_back({{0, 0}, {1, 1}, {3, 3}});
  return options;
}

bool read(std::string_view text, const TorchReadOptions &options, Schedule &schedule) {
  DiagnosticSink sink;
  bool ok = readTorchCsv(text, options, schedule, sink);
  expect(ok == !sink.hasErrors(), "a schedule is read where there are no errors");
  return ok;
}

/// What the writer gives is read without any option.
void readAgain(const Schedule &schedule, const std::string &text, const char *what) {
  TorchReadOptions options;
  options.dialect = TorchDialect::Current;
  Schedule again;
  expect(read(text, options, again), what);
  expectSame(schedule, again, what);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  Schedule schedule;
  std::string_view text(reinterpret_cast<const char *>(data + 1), size - 1);
  if (!read(text, getOptions(*data), schedule))
    return 0;
  DiagnosticSink violations;
  OpIndex index = checkSchedule(schedule, violations);
  if (violations.hasErrors())
    return 0;
  Timeline timeline(index, schedule.planCosts);
  readAgain(schedule, printTorchCsv(schedule), "a written schedule is the same");
  readAgain(schedule, printTorchCsvComms(timeline), "a schedule with transfers is the same");
  printAndCompile(schedule);
  return 0;
}
