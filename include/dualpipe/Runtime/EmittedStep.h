//===- EmittedStep.h - a step that --emit=cuda wrote, as a plug-in ----------===//

#ifndef DUALPIPE_RUNTIME_EMITTEDSTEP_H
#define DUALPIPE_RUNTIME_EMITTEDSTEP_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/emitted.h"

#include <memory>
#include <string>

namespace dualpipe::runtime {

/// A shared object built from what `--emit=cuda` wrote. It issues the steps of ranks in place of
/// the commands of their program, which still says what is allocated, checked and reported.
class EmittedStep {
public:
  /// Fails with a message for the user: no shared object, not one of a step, another version.
  static Result<std::shared_ptr<const EmittedStep>> load(const std::string &path);
  /// The same for functions that are at hand. `steps` must outlive it.
  static Result<std::shared_ptr<const EmittedStep>> create(const dp_step_program &steps,
                                                           const std::string &name);

  /// Whether it was written from this program and has the step of each of the ranks at hand.
  Status checkProgram(const program::Program &program) const;
  /// Null where it has none.
  const dp_step_rank *findRank(uint32_t rank) const;

private:
  EmittedStep(std::string name, std::shared_ptr<void> library, const dp_step_program &steps)
      : name(std::move(name)), library(std::move(library)), steps(&steps) {}
  static Result<std::shared_ptr<const EmittedStep>>
  create(const dp_step_program &steps, const std::string &name, std::shared_ptr<void> library);

  std::string name; ///< for messages
  std::shared_ptr<void> library;
  const dp_step_program *steps;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EMITTEDSTEP_H
