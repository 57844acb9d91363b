//===- Library.cpp - the schedules of examples/ as the tests see them -------===//

#include "Library.h"

#include "dualpipe/Schedule/Checker.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

using namespace dualpipe;
using namespace dualpipe::test;

static uint32_t asParts(int64_t value) { return static_cast<uint32_t>(value); }
static uint32_t inTwo(int64_t) { return 2; }

const std::vector<Entry> &test::getLibrary() {
  static const std::vector<Entry> library = {
      {.name = "1f1b"},
      {.name = "1f1b-rules"},
      {.name = "chimera",
       .param = "pairs",
       .values = {1, 2, 3, 4},
       .isLegal =
           [](Size size, int64_t pairs) {
             return size.ranks % (2 * pairs) == 0 && size.microbatches >= 2 * pairs;
           }},
      {.name = "dualpipe",
       .isLegal =
           [](Size size, int64_t) {
             return size.ranks % 2 == 0 && size.microbatches % 2 == 0 &&
                    size.microbatches >= 2 * size.ranks;
           }},
      {.name = "dualpipev",
       .isLegal = [](Size size, int64_t) { return size.microbatches >= 2 * size.ranks; },
       .getParts = inTwo},
      {.name = "eager-1f1b"},
      {.name = "gpipe"},
      {.name = "hanayo", .param = "chunks", .values = {2, 1, 3, 4}, .getParts = asParts},
      {.name = "interleaved", .param = "chunks", .values = {2, 1, 3, 4}, .getParts = asParts},
      {.name = "looped-bfs", .param = "chunks", .values = {2, 1, 3, 4}, .getParts = asParts},
      {.name = "seq1f1b",
       .param = "slices",
       .values = {2, 1, 3, 4},
       .isLegal = [](Size size, int64_t slices) { return size.microbatches % slices == 0; },
       .getParts = asParts},
      {.name = "v-half", .getParts = inTwo},
      {.name = "v-min", .getParts = inTwo},
      {.name = "zb-h1"},
      {.name = "zb-h1-rules"},
      {.name = "zb-h2"},
      {.name = "zbv", .getParts = inTwo},
  };
  return library;
}

const Entry &test::findEntry(const std::string &name) {
  for (const Entry &entry : getLibrary())
    if (entry.name == name)
      return entry;
  throw std::runtime_error("no entry for examples/" + name + ".pipe");
}

std::vector<Entry> test::selectEntries(const std::function<bool(const Entry &)> &isMeant) {
  std::vector<Entry> entries;
  std::copy_if(getLibrary().begin(), getLibrary().end(), std::back_inserter(entries), isMeant);
  return entries;
}

std::string test::nameOfTest(const testing::TestParamInfo<Entry> &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Example::Example(const std::string &name)
    : entry(findEntry(name)), sources(std::make_unique<llvm::SourceMgr>()) {
  DiagnosticSink sink;
  std::string path = std::string(DUALPIPE_SOURCE_DIR) + "/examples/" + name + ".pipe";
  module = frontend::parseFile(*sources, path, sink);
  if (!module->isValid())
    throw std::runtime_error(sink.diagnostics().front().message);
}

std::optional<Schedule> Example::instantiate(Size size, const Options &options,
                                             DiagnosticSink &sink) const {
  frontend::Options all;
  all.ranks = size.ranks;
  all.microbatches = size.microbatches;
  all.forwardOnly = options.forwardOnly;
  all.planCosts = options.planCosts;
  if (entry.param && options.value)
    all.params.push_back({entry.param, *options.value});
  Schedule schedule;
  if (failed(frontend::instantiate(*module, all, schedule, sink)))
    return std::nullopt;
  return schedule;
}

Schedule Example::instantiate(Size size, const Options &options) const {
  DiagnosticSink sink;
  std::optional<Schedule> schedule = instantiate(size, options, sink);
  if (schedule)
    checkSchedule(*schedule, sink);
  if (!schedule || sink.hasErrors())
    throw std::runtime_error(sink.diagnostics().front().message);
  return std::move(*schedule);
}

int64_t OpTimes::get(OpKind kind) const {
  switch (kind) {
  case OpKind::Forward:
    return fwd;
  case OpKind::Backward:
    return bwdInput + bwdWeight;
  case OpKind::BackwardInput:
    return bwdInput;
  case OpKind::BackwardWeight:
    return bwdWeight;
  }
  return 0;
}

AsapResult test::measure(const Schedule &schedule, const OpTimes &times, int64_t latency,
                         bool occupies) {
  AsapCosts costs;
  costs.latency = latency;
  costs.latencyOccupiesChannel = occupies;
  costs.group = [&](uint32_t rank, size_t begin, size_t end) {
    int64_t sum = 0;
    for (size_t op = begin; op != end; ++op)
      sum += times.get(schedule.ranks[rank].kind[op]);
    return sum;
  };
  return runAsSoonAsPossible(schedule, costs);
}

int64_t test::getMostIdle(const AsapResult &result) {
  return result.makespan - *std::min_element(result.busy.begin(), result.busy.end());
}

unsigned test::getHighestPeak(const AsapResult &result) {
  return *std::max_element(result.peak.begin(), result.peak.end());
}
