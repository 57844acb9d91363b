//===- FakeModel.h - a model that shows in which order it was called --------===//
//
// One double per tensor. A stage adds its parameter to what comes in; the weight
// half doubles the gradient and adds the micro-batch number plus one, so the
// result tells the order of accumulation.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_UNIT_MODELS_FAKEMODEL_H
#define DUALPIPE_TEST_UNIT_MODELS_FAKEMODEL_H

#include "dualpipe/stage.h"

#include <string>
#include <vector>

namespace dualpipe::runtime::test {

/// What the fake is asked to get wrong, and what it was called with.
struct FakeBehaviour {
  std::string failing;   ///< name of the function that fails
  int failingStage = -1; ///< of this stage only, where not negative
  bool silent = false;   ///< fails without a message
  dp_contract contract = {sizeof(dp_contract),
                          1,
                          DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT),
                          DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT),
                          DP_READS(DP_SAVED) | DP_READS(DP_WEIGHT_CONTEXT),
                          1};
  dp_tensor_spec param = {{kDLFloat, 64, 1}, 1, 1, {1}};
  dp_tensor_spec tensor = {{kDLFloat, 64, 1}, 1, 1, {1}};
  uint32_t numParams = 1;
  size_t workspace = 16;
  int backwardsWithLabels = 0;        ///< full backwards of a last stage that were given the labels
  std::vector<size_t> workspaceSizes; ///< what forwards were given
  int64_t oddOutput = 0;              ///< extent of the output of stage 0, where not 0
  std::vector<std::string> log;
};

/// Shared by all fake models of a test; reset it first.
FakeBehaviour &getFakeBehaviour();

dp_model_api makeFakeApi();
/// With `fused` and `step`.
dp_model_api makeFullFakeApi();

} // namespace dualpipe::runtime::test

#endif // DUALPIPE_TEST_UNIT_MODELS_FAKEMODEL_H
