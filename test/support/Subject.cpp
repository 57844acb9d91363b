//===- Subject.cpp - a correct program, and what it computes ----------------===//

#include "Subject.h"

#include "ExactModel.h"

#include "dualpipe/Runtime/ShuffledRun.h"

#include <cstring>
#include <stdexcept>

namespace dualpipe::test {

using namespace runtime;

/// Two steps: what is left over from the first would be used in the second.
static constexpr TrainingOptions kTraining = {.seed = 7, .numSteps = 2, .learningRate = 1};

static Model makeModel(const program::SharedInfo &shared) {
  ModelOptions options;
  options.numStages = shared.numStages;
  options.numMicrobatches = shared.numMicrobatches;
  Result<Model> model = Model::create(getExactModel(), options);
  if (!model.ok())
    throw std::runtime_error(model.message());
  return std::move(*model);
}

Subject::Subject(std::string name, program::Program correct, const TrainingOptions &training)
    : name(std::move(name)), program(std::move(correct)), training(training),
      model(std::make_unique<Model>(makeModel(program.shared))),
      optimizer(std::move(*createOptimizer("sgd"))) {
  Result<Replay> replayed = replay(*model, program, *optimizer, training);
  if (!replayed.ok())
    throw std::runtime_error(replayed.message());
  expected = std::move(replayed->result);
}

static bool isSame(const AlignedBuffer &a, const AlignedBuffer &b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

const TrainingOptions &Subject::getTraining() { return kTraining; }
Model Subject::createModel() const { return makeModel(program.shared); }

std::string Subject::compare(const TrainingResult &result) const {
  for (size_t i = 0; i != expected.losses.size(); ++i)
    if (result.losses[i] != expected.losses[i])
      return "another loss of micro-batch " + std::to_string(i % expected.numMicrobatches);
  for (size_t i = 0; i != expected.copies.size(); ++i) {
    const StageCopy &mine = result.copies[i], &other = expected.copies[i];
    const std::string where = " of stage " + std::to_string(other.getStage()) + " on rank " +
                              std::to_string(other.getRank());
    if (!isSame(mine.getGradBuffer(), other.getGradBuffer()))
      return "other gradients" + where;
    if (!isSame(mine.getParamBuffer(), other.getParamBuffer()))
      return "other weights" + where;
  }
  return "";
}

std::string Subject::run(const program::Program &mutant, uint64_t shuffleSeed) const {
  Result<RunReport> report = runShuffled(*model, mutant, *optimizer, training, shuffleSeed);
  return report.ok() ? compare(report->result) : report.message();
}

} // namespace dualpipe::test
