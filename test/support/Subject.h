//===- Subject.h - a correct program, and what it computes ------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SUBJECT_H
#define DUALPIPE_TEST_SUPPORT_SUBJECT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Reference.h"

#include <cstdint>
#include <memory>
#include <string>

namespace dualpipe::test {

/// A correct program, and its losses, gradients and weights on one device: after two steps, unless
/// others are given.
class Subject {
public:
  /// Throws where the program cannot be replayed.
  Subject(std::string name, program::Program program,
          const runtime::TrainingOptions &training = getTraining());

  const std::string name; ///< for findings
  const program::Program program;

  /// Runs another program in a random order and compares. Empty where all agrees, else what went
  /// wrong. The program must have passed verifyShared and verifyRanges.
  std::string run(const program::Program &mutant, uint64_t shuffleSeed) const;

  /// How another run of the program differs from what it should be; empty where it does not.
  std::string compare(const runtime::TrainingResult &result) const;

  /// Two steps.
  static const runtime::TrainingOptions &getTraining();
  runtime::Model createModel() const;

private:
  const runtime::TrainingOptions training;
  std::unique_ptr<runtime::Model> model;
  std::unique_ptr<runtime::Optimizer> optimizer;
  runtime::TrainingResult expected;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SUBJECT_H
