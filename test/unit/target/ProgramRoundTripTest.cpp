//===- ProgramRoundTripTest.cpp - stream programs to plain data and back ----===//
//
// Export loses nothing, import gives the same text again, and what a program
// names beyond the shared tables is an error at its op.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace mlir;

namespace {

/// Both ranks of a step with one micro-batch, with every kind of command.
constexpr const char *kModule = R"(
stream.program 0 of @two streams [<compute>, <send act to 1>, <recv grad from 1>, <reduce [0, 1]>] slots [input 1, output 1, grad_output 1, saved 1] {
  stream.phase "warm-up"
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1, saved = 3) first
  %f = stream.record on 0
  stream.wait %f on 1
  stream.group on 1 {
    stream.send act on 1 stage 1 mb 0 to 1 slot 1
  }
  stream.phase "drain"
  stream.recv grad on 2 stage 0 mb 0 from 1 slot 2
  %g = stream.record on 2
  stream.wait %g on 0
  stream.launch backward on 0 stage 0 mb 0 (grad_output = 2, saved = 3) first
  %b = stream.record on 0
  stream.wait %b on 3
  stream.reduce on 3 stage 0 with [0, 1]
  %r = stream.record on 3
  stream.wait %r on 0
  stream.step on 0 stage 0
}
stream.program 1 of @two streams [<compute>, <recv act from 0>, <send grad to 0>] slots [input 1 + 1, grad_input 1, saved 1, weight_context 1, labels 1] {
  stream.recv act on 1 stage 1 mb 0 from 0 slot 1
  %x = stream.record on 1
  stream.launch load_labels on 0 stage 1 mb 0 (labels = 5) last
  stream.wait %x on 0
  stream.launch forward on 0 stage 1 mb 0 (input = 1, saved = 3, labels = 5) last
  stream.launch backward_input on 0 stage 1 mb 0 (grad_input = 2, saved = 3, weight_context = 4) last
  %dx = stream.record on 0
  stream.wait %dx on 2
  stream.send grad on 2 stage 0 mb 0 to 0 slot 2
  stream.pair on 0 {
    stream.launch backward_weight on 0 stage 1 mb 0 (saved = 3, weight_context = 4) last
    stream.launch load_labels on 0 stage 1 mb 0 (labels = 5) last
  }
}
)";

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

class ProgramRoundTrip : public ::testing::Test {
protected:
  ProgramRoundTrip()
      : handler(&context, [this](Diagnostic &diag) { errors.push_back(diag.str()); }) {
    context.loadDialect<stream::StreamDialect>();
    module = parseSourceString<ModuleOp>(kModule, ParserConfig(&context), "two.mlir");
  }

  stream::ProgramOp getRank(unsigned rank) {
    return *std::next(module->getOps<stream::ProgramOp>().begin(), rank);
  }
  SharedTables scan() { return *SharedTables::scan(*module); }

  MLIRContext context;
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(ProgramRoundTrip, ImportGivesTheSameText) {
  ASSERT_TRUE(module);
  FailureOr<program::Program> program = exportModule(*module);
  ASSERT_TRUE(succeeded(program)) << errors.size();
  OwningOpRef<ModuleOp> back = importProgram(*program, &context);
  EXPECT_EQ(print(*module), print(*back));
}

TEST_F(ProgramRoundTrip, CommandsKeepTheirPlaces) {
  ASSERT_TRUE(module);
  SharedTables tables = scan();
  std::vector<Operation *> ops;
  FailureOr<program::RankProgram> rank = exportRank(getRank(0), tables, &ops);
  ASSERT_TRUE(succeeded(rank));
  ASSERT_EQ(rank->commands.size(), ops.size());
  const program::SharedInfo &info = tables.getInfo();
  for (size_t i = 0; i < ops.size(); ++i) {
    auto loc = cast<FileLineColLoc>(ops[i]->getLoc());
    EXPECT_EQ(program::describeLocation(info, rank->commands[i].loc),
              "two.mlir:" + std::to_string(loc.getLine()) + ":" + std::to_string(loc.getColumn()));
  }
}

TEST_F(ProgramRoundTrip, PlainDataIsWhatTheTextSays) {
  ASSERT_TRUE(module);
  FailureOr<program::Program> program = exportModule(*module);
  ASSERT_TRUE(succeeded(program));
  const program::RankProgram &rank = program->ranks[0];
  EXPECT_EQ(rank.numEvents, 4u);
  EXPECT_EQ(rank.streams.size(), 4u);
  ASSERT_EQ(rank.phases.size(), 2u);
  EXPECT_EQ(rank.phases[1].command, 6u) << "the command after the group";
  ASSERT_EQ(rank.launches.size(), 3u);
  EXPECT_EQ(rank.launches[1].slots[unsigned(program::SlotKind::Saved)], 3u);
  EXPECT_EQ(rank.launches[1].slots[unsigned(program::SlotKind::GradInput)], program::kNone);
  EXPECT_EQ(rank.launches[1].flags, program::kFirstStage);
  EXPECT_EQ(program->shared.numRanks, 2u);
  EXPECT_EQ(program->shared.phaseNames, (std::vector<std::string>{"warm-up", "drain"}));
  ASSERT_EQ(program->shared.channels.size(), 2u);
  uint64_t digest = program::extendDigest(program::kDigestSeed, 1, 0);
  EXPECT_EQ(program->shared.channels[0].digest, digest);
  EXPECT_EQ(program->shared.channels[0].numTransfers, 1u);
}

/// What each incomplete table leaves unnamed.
struct Gap {
  const char *name;
  void (*remove)(program::SharedInfo &);
  const char *message;
};

class ProgramGaps : public ProgramRoundTrip, public ::testing::WithParamInterface<Gap> {};

TEST_P(ProgramGaps, IsAnErrorAtTheOp) {
  ASSERT_TRUE(module);
  program::SharedInfo info = scan().getInfo();
  GetParam().remove(info);
  SharedTables tables(std::move(info), &context);
  EXPECT_TRUE(failed(exportRank(getRank(0), tables)));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Tables, ProgramGaps,
    ::testing::Values(Gap{"channels", [](program::SharedInfo &info) { info.channels.clear(); },
                          "rank 0: no channel from rank 0 to rank 1 carries activations"},
                      Gap{"groups", [](program::SharedInfo &info) { info.reduceGroups.clear(); },
                          "rank 0: no reduce group has the ranks [0, 1]"},
                      Gap{"phases", [](program::SharedInfo &info) { info.phaseNames.pop_back(); },
                          "rank 0: the phase \"drain\" is not in the shared tables"},
                      Gap{"locations", [](program::SharedInfo &info) { info.locations.resize(1); },
                          "rank 0: the location is not in the shared tables"}),
    [](const auto &test) { return std::string(test.param.name); });
