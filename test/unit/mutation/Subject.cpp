//===- Subject.cpp - a correct program, and what it computes ----------------===//

#include "Subject.h"

#include "test/support/CompileExample.h"
#include "test/support/ExactModel.h"

#include "dualpipe/Runtime/ShuffledRun.h"

#include <cstring>
#include <stdexcept>

namespace dualpipe::test {

using namespace runtime;

/// Two steps: what is left over from the first would be used in the second.
static constexpr TrainingOptions kTraining = {.seed = 7, .numSteps = 2, .learningRate = 1};

const std::vector<Source> &getSources() {
  static const std::vector<Source> sources = {{"1f1b", 2, 4},
                                              {"1f1b", 4, 6},
                                              {"1f1b-rules", 3, 5},
                                              {"chimera", 2, 4},
                                              {"chimera", 4, 6},
                                              {"dualpipe", 2, 4},
                                              {"dualpipe", 4, 8},
                                              {"dualpipe", 6, 12},
                                              {"dualpipev", 2, 4},
                                              {"dualpipev", 3, 6},
                                              {"eager-1f1b", 3, 6},
                                              {"gpipe", 3, 4},
                                              {"hanayo", 3, 4},
                                              {"interleaved", 2, 4},
                                              {"interleaved", 3, 6},
                                              {"looped-bfs", 3, 4},
                                              {"seq1f1b", 3, 4},
                                              {"v-half", 3, 5},
                                              {"v-min", 3, 5},
                                              {"zb-h1", 3, 5},
                                              {"zb-h1-rules", 4, 5},
                                              {"zb-h2", 3, 6},
                                              {"zbv", 3, 6},
                                              {"dualpipe", 4, 8, true},
                                              {"interleaved", 2, 4, true}};
  return sources;
}

std::string Source::describe() const {
  return std::string(example) + ", " + std::to_string(ranks) + " ranks, " +
         std::to_string(microbatches) + " micro-batches" + (forwardOnly ? ", forward only" : "");
}

static Model makeModel(const program::SharedInfo &shared) {
  ModelOptions options;
  options.numStages = shared.numStages;
  options.numMicrobatches = shared.numMicrobatches;
  Result<Model> model = Model::create(getExactModel(), options);
  if (!model.ok())
    throw std::runtime_error(model.message());
  return std::move(*model);
}

Subject::Subject(const Source &source)
    : source(source), program(CompiledExample(source.example, source.ranks, source.microbatches, {},
                                              source.forwardOnly)
                                  .program),
      model(std::make_unique<Model>(makeModel(program.shared))),
      optimizer(std::move(*createOptimizer("sgd"))) {
  Result<Replay> replayed = replay(*model, program, *optimizer, kTraining);
  if (!replayed.ok())
    throw std::runtime_error(replayed.message());
  expected = std::move(replayed->result);
}

static bool isSame(const AlignedBuffer &a, const AlignedBuffer &b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

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
  Result<RunReport> report = runShuffled(*model, mutant, *optimizer, kTraining, shuffleSeed);
  return report.ok() ? compare(report->result) : report.message();
}

} // namespace dualpipe::test
