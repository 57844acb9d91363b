//===- Progress.h - how far something long has come -------------------------===//

#ifndef DUALPIPE_RUNTIME_PROGRESS_H
#define DUALPIPE_RUNTIME_PROGRESS_H

#include <cstdint>
#include <memory>
#include <string>

namespace dualpipe::runtime {

/// One line on the standard error, rewritten in place while it lives, after half a
/// second and only where that is a terminal: otherwise nothing is written and no thread
/// started. Gone when it ends. All calls may come from any thread.
class ProgressLine {
public:
  explicit ProgressLine(std::string label);
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// What is done now, of which nothing is known yet.
  void begin(std::string label);
  /// `done` of `total`; cheap.
  void show(uint64_t done, uint64_t total);
  /// Before something else is written to the terminal: takes the line away until it is
  /// due again.
  void clear();
  /// The line is gone and does not come back.
  void end();

private:
  struct State;
  std::unique_ptr<State> state; ///< null where nobody looks
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROGRESS_H
