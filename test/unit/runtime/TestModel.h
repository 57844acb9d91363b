//===- TestModel.h - a small model whose every value depends on the order ---===//

#ifndef DUALPIPE_TEST_UNIT_RUNTIME_TESTMODEL_H
#define DUALPIPE_TEST_UNIT_RUNTIME_TESTMODEL_H

#include "dualpipe/stage.h"

#include <atomic>

namespace dualpipe::test {

/// Where a test makes the model fail or hang.
struct TestModelHooks {
  static constexpr uint32_t kNever = ~0u;
  std::atomic<uint32_t> failStage{kNever}; ///< the forward of micro-batch 1 of this stage fails
  std::atomic<uint32_t> hangStage{kNever}; ///< that forward waits for `released`
  std::atomic<bool> released{false};
  std::atomic<uint32_t> fusedCalls{0}; ///< how often `fused` ran
  std::atomic<int64_t> extent{8};      ///< what it says of its tensors; it computes on eight

  void reset() {
    failStage = kNever;
    hangStage = kNever;
    released = false;
    fusedCalls = 0;
    extent = 8;
  }
};
TestModelHooks &getHooks();

/// Tensors of eight float64; with or without a fused function.
const dp_model_api &getTestModel(bool fused = false);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_RUNTIME_TESTMODEL_H
