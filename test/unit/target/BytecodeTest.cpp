//===- BytecodeTest.cpp - properties of ops in damaged bytecode -------------===//
//
// Bytecode writes a number below 128 as one byte, twice the number plus one.
//
//===----------------------------------------------------------------------===//

#include "dialects/Stream/Stream.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace mlir;

namespace {

constexpr const char *kModule = R"(
stream.program 0 of @s streams [<compute>] slots [input 72 + 5] {
  stream.launch load_labels on 41 stage 42 mb 43 (labels = 0) last
}
)";

class Bytecode : public ::testing::Test {
protected:
  Bytecode() : handler(&context, [this](mlir::Diagnostic &diag) { errors += diag.str() + "\n"; }) {
    context.loadDialect<stream::StreamDialect>();
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(kModule, ParserConfig(&context), "s.mlir");
    llvm::raw_string_ostream stream(bytes);
    (void)writeBytecodeToFile(*module, stream);
  }

  /// Puts `value` for the number at `index` of the only place with these numbers.
  void damage(std::vector<unsigned> numbers, size_t index, unsigned value) {
    std::string text;
    for (unsigned number : numbers)
      text += static_cast<char>(number * 2 + 1);
    size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(bytes.find(text, at + 1), std::string::npos);
    bytes[at + index] = static_cast<char>(value * 2 + 1);
  }
  bool parses() {
    return static_cast<bool>(parseSourceString<ModuleOp>(bytes, ParserConfig(&context)));
  }

  MLIRContext context;
  std::string errors;
  ScopedDiagnosticHandler handler;
  std::string bytes;
};

} // namespace

TEST_F(Bytecode, RoundTrips) { EXPECT_TRUE(parses()) << errors; }

TEST_F(Bytecode, MoreSparesThanSlots) {
  damage({1, 0, 0, 77, 5}, 4, 78);
  EXPECT_FALSE(parses());
  EXPECT_NE(errors.find("expected a slot class with a known kind and spares within its count"),
            std::string::npos)
      << errors;
}

TEST_F(Bytecode, UnknownSlotKind) {
  damage({1, 0, 0, 77, 5}, 1, program::kNumSlotKinds);
  EXPECT_FALSE(parses());
  EXPECT_NE(errors.find("expected a slot class with a known kind"), std::string::npos) << errors;
}

TEST_F(Bytecode, UnknownFunction) {
  damage({1, 41, 42, 43}, 0, 6);
  EXPECT_FALSE(parses());
  EXPECT_NE(errors.find("expected the number of a stage function, got 6"), std::string::npos)
      << errors;
}
