//===- StreamLimitTest.cpp - more streams than a program can have -----------===//

#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace mlir;

namespace {

/// A rank that receives from `peers` other ranks.
std::string makeStar(uint32_t peers) {
  std::string text = "pipe.rank 0 of @star forward_only {\n";
  for (uint32_t peer = 1; peer <= peers; ++peer) {
    std::string number = std::to_string(peer);
    text += "pipe.recv act stage " + number + " mb 0 from " + number + "\n";
    text += "pipe.fwd stage " + number + " mb 0 last\n";
  }
  return text + "}\n";
}

/// What the conversion says of a star, without a pass that allocates clocks.
std::string convertStar(uint32_t peers) {
  MLIRContext context;
  context.loadDialect<pipe::PipeDialect, stream::StreamDialect>();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diag) { message = diag.str(); });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(makeStar(peers), ParserConfig(&context), "star.mlir");
  if (!module)
    return "cannot parse: " + message;
  pipe::RankOp rank = *module->getOps<pipe::RankOp>().begin();
  if (failed(materializeDataflow(rank)) || failed(assignSlots(rank, 0)))
    return "cannot lower: " + message;
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  return failed(convertRank(rank, builder)) ? message : "converted";
}

} // namespace

TEST(StreamLimit, IsCheckedBeforeClocksAreAllocated) {
  EXPECT_EQ(convertStar(4095), "converted");
  EXPECT_EQ(convertStar(4096), "rank 0: 4097 streams, expected at most 4096: too many channels and "
                               "reduce groups end here");
}

TEST(StreamLimit, HoldsForAProgramAsWell) {
  std::string streams = "<compute>";
  for (uint32_t peer = 1; peer <= stream::kMaxStreams; ++peer)
    streams += ", <recv act from " + std::to_string(peer) + ">";
  MLIRContext context;
  context.loadDialect<stream::StreamDialect>();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diag) { message = diag.str(); });
  EXPECT_FALSE(parseSourceString<ModuleOp>("stream.program 0 of @s streams [" + streams + "] {}",
                                           ParserConfig(&context), "s.mlir"));
  EXPECT_EQ(message, "'stream.program' op has 4097 streams, expected at most 4096");
}
