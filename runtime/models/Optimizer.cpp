//===- Optimizer.cpp - the optimizers that the runtime brings ----------------===//

#include "runtime/models/Settings.h"

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <fmt/format.h>

namespace dualpipe::runtime {
namespace {

/// Plain gradient descent, without momentum.
class Sgd : public Optimizer {
public:
  uint32_t getStateFactor() const override { return 0; }
  Status step(StageCopy &copy, const dp_call &call) const override { return descend(copy, call); }
};

} // namespace

Result<std::unique_ptr<Optimizer>> createOptimizer(const std::string &name) {
  if (name == "sgd")
    return std::unique_ptr<Optimizer>(std::make_unique<Sgd>());
  return Status::failure(fmt::format("unknown optimizer '{}'{}; the optimizers are sgd", name,
                                     models::didYouMean(name, {"sgd"})));
}

Status takeStep(const Model &model, const Optimizer &optimizer, StageCopy &copy, StageCall &call) {
  if (!model.hasStep())
    return optimizer.step(copy, call.get());
  call.begin(copy, 0, 0, 0, true);
  return model.runStep(call);
}

} // namespace dualpipe::runtime
