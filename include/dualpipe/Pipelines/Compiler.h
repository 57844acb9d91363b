//===- Compiler.h - a schedule to a verified program, rank by rank ----------===//
//
// Every rank is built, lowered, exported and freed on its own, in parallel, so
// the memory of the IR is that of the ranks under way. The checks between ranks
// (D1 to D3) run on the exported programs.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_PIPELINES_COMPILER_H
#define DUALPIPE_PIPELINES_COMPILER_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/Timeline.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace dualpipe {

struct CompileOptions {
  Costs planCosts;
  /// Compile one rank only. The checks between ranks are left out then.
  std::optional<uint32_t> onlyRank;
  /// Slots beyond the peak for each channel.
  unsigned spares = kDefaultSpares;
  /// Told how many ranks are done, from any thread. May be empty.
  std::function<void(uint64_t done, uint64_t total)> onProgress;
};

/// Compiles a checked schedule. `timeline` was laid with `options.planCosts`.
/// The dialects must be loaded into `context`. Errors are emitted at the place
/// of the `.pipe` op that they concern.
llvm::FailureOr<program::Program>
compileProgram(mlir::MLIRContext *context, const Timeline &timeline, const CompileOptions &options);

} // namespace dualpipe

#endif // DUALPIPE_PIPELINES_COMPILER_H
