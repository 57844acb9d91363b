//===- Subject.h - a correct program, and what it computes ------------------===//

#ifndef DUALPIPE_TEST_UNIT_MUTATION_SUBJECT_H
#define DUALPIPE_TEST_UNIT_MUTATION_SUBJECT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Reference.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dualpipe::test {

/// Where a program comes from.
struct Source {
  const char *example;
  uint32_t ranks, microbatches;
  bool forwardOnly = false;

  /// "dualpipe, 4 ranks, 8 micro-batches".
  std::string describe() const;
};
const std::vector<Source> &getSources();

/// A program that was compiled, and its losses, gradients and weights after two steps on one
/// device.
class Subject {
public:
  /// Throws where the source does not compile.
  explicit Subject(const Source &source);

  const Source source;
  program::Program program;

  /// Runs another program in a random order and compares. Empty where all agrees, else what went
  /// wrong. The program must have passed verifyShared and verifyRanges.
  std::string run(const program::Program &mutant, uint64_t shuffleSeed) const;

private:
  std::string compare(const runtime::TrainingResult &result) const;

  std::unique_ptr<runtime::Model> model;
  std::unique_ptr<runtime::Optimizer> optimizer;
  runtime::TrainingResult expected;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_MUTATION_SUBJECT_H
