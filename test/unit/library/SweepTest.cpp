//===- SweepTest.cpp - every schedule at every size -------------------------===//
//
// Up to 16 ranks and 48 micro-batches: a legal size gives an order without a
// finding, an illegal one fails in the schedule's own rules and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "dualpipe/Schedule/Checker.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

constexpr uint32_t kMaxRanks = 16, kMaxMicrobatches = 48;

std::string describe(const DiagnosticSink &sink) {
  std::string text;
  for (const Diagnostic &diagnostic : sink.diagnostics())
    text += diagnostic.message + "\n";
  return text;
}

TEST(Library, HasEveryFile) {
  std::set<std::string> files, entries;
  for (const auto &file : std::filesystem::directory_iterator(DUALPIPE_SOURCE_DIR "/examples"))
    if (file.path().extension() == ".pipe")
      files.insert(file.path().stem());
  for (const Entry &entry : getLibrary())
    entries.insert(entry.name);
  EXPECT_EQ(files, entries);
}

/// Other planning costs give rules another order; programs and timelines keep theirs.
TEST(Library, PlanningCostsChangeRulesAlone) {
  const std::set<std::string> byRules = {"1f1b-rules", "v-half", "zb-h1-rules", "zbv"};
  Example::Options planned;
  planned.planCosts = *Costs::parse("fwd=18.522,bwd_input=18.086,bwd_weight=9.337,transfer=0.601");
  std::set<std::string> changed;
  for (const Entry &entry : getLibrary()) {
    Example example(entry.name);
    for (Size size : {Size{4, 12}, Size{8, 24}}) {
      Schedule usual = example.instantiate(size), other = example.instantiate(size, planned);
      for (uint32_t rank = 0; rank != size.ranks; ++rank) {
        const RankOrder &a = usual.ranks[rank], &b = other.ranks[rank];
        if (a.kind != b.kind || a.stage != b.stage || a.microbatch != b.microbatch ||
            a.group != b.group)
          changed.insert(entry.name);
      }
    }
  }
  for (const std::string &name : changed)
    EXPECT_EQ(byRules.count(name), 1u) << name;
  // So that the costs are such that something can change.
  EXPECT_EQ(changed.count("zbv"), 1u);
}

TEST(Library, SaysWhatIsIllegal) {
  struct Case {
    const char *name;
    Size size;
    std::optional<int64_t> value;
    const char *message;
  };
  const Case cases[] = {
      {"chimera", {4, 8}, 0, "schedule 'chimera' needs at least 1 pair of pipelines, got 0"},
      {"chimera", {6, 8}, 2, "schedule 'chimera' needs a multiple of 4 ranks, got 6"},
      {"chimera",
       {4, 1},
       1,
       "schedule 'chimera' needs a micro-batch for each of 2 pipelines, got 1"},
      {"dualpipev", {4, 7}, {}, "schedule 'dualpipev' needs at least 8 micro-batches, got 7"},
      {"hanayo", {4, 8}, 0, "schedule 'hanayo' needs at least 1 chunk on each rank, got 0"},
      {"interleaved",
       {4, 8},
       -1,
       "schedule 'interleaved' needs at least 1 chunk on each rank, got -1"},
      {"looped-bfs", {4, 8}, 0, "schedule 'looped_bfs' needs at least 1 chunk on each rank, got 0"},
      {"seq1f1b", {4, 8}, 0, "schedule 'seq1f1b' needs at least 1 slice of a sequence, got 0"},
      {"seq1f1b", {4, 8}, 3, "schedule 'seq1f1b' needs whole sequences of 3 slices, got 8 slices"},
  };
  for (const Case &illegal : cases) {
    DiagnosticSink sink;
    EXPECT_FALSE(Example(illegal.name).instantiate(illegal.size, {.value = illegal.value}, sink));
    ASSERT_EQ(sink.diagnostics().size(), 1u) << describe(sink);
    EXPECT_EQ(sink.diagnostics().front().message, illegal.message);
  }
}

class Sweep : public testing::TestWithParam<Entry> {
protected:
  void expectLegal(Size size, const Example::Options &options) {
    DiagnosticSink sink;
    std::optional<Schedule> schedule = example.instantiate(size, options, sink);
    if (schedule)
      checkSchedule(*schedule, sink);
    EXPECT_TRUE(schedule && !sink.hasErrors()) << describe(sink);
  }

  /// Nothing but the rules of the schedule is reported.
  void expectIllegal(Size size, const Example::Options &options) {
    DiagnosticSink sink;
    EXPECT_FALSE(example.instantiate(size, options, sink)) << "is legal";
    EXPECT_FALSE(sink.diagnostics().empty()) << "nothing says why";
    for (const Diagnostic &diagnostic : sink.diagnostics()) {
      EXPECT_EQ(diagnostic.message.find("schedule '"), 0u) << diagnostic.message;
      EXPECT_NE(diagnostic.message.find("' needs "), std::string::npos) << diagnostic.message;
    }
  }

  void sweep(const Example::Options &options) {
    const Entry &entry = GetParam();
    for (Size size{1, 1}; size.ranks <= kMaxRanks; ++size.ranks)
      for (size.microbatches = 1; size.microbatches <= kMaxMicrobatches; ++size.microbatches) {
        SCOPED_TRACE(testing::Message() << size);
        if (entry.isLegal(size, options.value.value_or(entry.values.front())))
          expectLegal(size, options);
        else
          expectIllegal(size, options);
        if (HasFailure())
          return;
      }
  }

  Example example{GetParam().name};
};

TEST_P(Sweep, LegalSizesCompileAndOthersFailInRequire) {
  sweep({});
  const Entry &entry = GetParam();
  for (size_t i = 1; i != entry.values.size(); ++i) {
    SCOPED_TRACE(testing::Message() << entry.param << "=" << entry.values[i]);
    sweep({.value = entry.values[i]});
  }
}

class SweepOfParameter : public Sweep {};

TEST_P(SweepOfParameter, FailsInRequireWhereItIsNotPositive) {
  for (int64_t value : {0, -1, -7})
    expectIllegal({4, 8}, {.value = value});
}

/// Rules give other orders for other times, and those are valid and within memory as well.
TEST_P(Sweep, PlanningCostsKeepItValid) {
  for (const char *costs : {"fwd=2,bwd_input=2.5,bwd_weight=1,transfer=0.3",
                            "fwd=1,bwd_input=0.5,bwd_weight=3,bwd=4,transfer=2"}) {
    SCOPED_TRACE(costs);
    Result<Costs> parsed = Costs::parse(costs);
    ASSERT_TRUE(parsed);
    for (Size size : {Size{1, 3}, Size{2, 7}, Size{3, 12}, Size{4, 12}, Size{6, 24}, Size{7, 15},
                      Size{8, 48}, Size{12, 48}, Size{16, 48}}) {
      SCOPED_TRACE(testing::Message() << size);
      if (GetParam().isLegal(size, GetParam().values.front()))
        expectLegal(size, {.planCosts = *parsed});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Sweep, testing::ValuesIn(getLibrary()), nameOfTest);
INSTANTIATE_TEST_SUITE_P(Library, SweepOfParameter,
                         testing::ValuesIn(selectEntries([](const Entry &entry) {
                           return entry.param != nullptr;
                         })),
                         nameOfTest);

} // namespace
