//===- Training.h - a compiled example with a model, ready to be run --------===//

#ifndef DUALPIPE_BENCHMARKS_TRAINING_H
#define DUALPIPE_BENCHMARKS_TRAINING_H

#include "test/support/CompileExample.h"

#include "dualpipe/Runtime/Session.h"

#include <memory>
#include <string>

namespace dualpipe::benchmarks {

/// DualPipe for a built-in model with its default settings.
class Training {
public:
  static Result<Training> create(const std::string &model, uint32_t ranks, uint32_t microbatches) {
    test::CompiledExample example("dualpipe", ranks, microbatches);
    Training training;
    training.program = std::make_shared<const program::Program>(std::move(example.program));
    runtime::ModelOptions options;
    options.name = model;
    options.numStages = training.program->shared.numStages;
    options.numMicrobatches = microbatches;
    Result<runtime::Model> created = runtime::Model::create(options);
    if (!created)
      return created.getStatus();
    training.model = std::make_shared<const runtime::Model>(std::move(*created));
    Result<std::unique_ptr<runtime::Optimizer>> optimizer = runtime::createOptimizer("sgd");
    if (!optimizer)
      return optimizer.getStatus();
    training.optimizer = std::move(*optimizer);
    return training;
  }

  /// A session of `steps` steps; it runs once.
  Result<std::unique_ptr<runtime::Session>> start(uint32_t steps) const {
    runtime::SessionOptions options;
    options.training.numSteps = steps;
    return runtime::Session::create(program, model, optimizer, options);
  }

  uint32_t getNumStages() const { return program->shared.numStages; }

private:
  std::shared_ptr<const program::Program> program;
  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const runtime::Optimizer> optimizer;
};

} // namespace dualpipe::benchmarks

#endif // DUALPIPE_BENCHMARKS_TRAINING_H
