//===- FoldStatements.h - runs of equal structure as loops --------------------===//

#ifndef DUALPIPE_LIB_TARGET_PIPE_FOLDSTATEMENTS_H
#define DUALPIPE_LIB_TARGET_PIPE_FOLDSTATEMENTS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace dualpipe::pipe_text {

/// One op, or one end of a transfer.
struct Action {
  std::string_view word; ///< `fwd`, `send bwd`, …
  uint32_t pipeline;
  uint32_t stage;     ///< within the pipeline
  int64_t microbatch; ///< within the pipeline

  bool looksLike(const Action &other) const {
    return word == other.word && pipeline == other.pipeline && stage == other.stage;
  }
};

/// An action on its own, or a fused group.
struct Statement {
  std::string_view phase; ///< empty: in none
  std::vector<Action> actions;

  /// Whether `other` differs in its micro-batches only.
  bool looksLike(const Statement &other) const;
};

/// The statements [begin, begin + length) stand for `count` repetitions of
/// themselves. From one to the next, the micro-batch of each action moves by a step of
/// its own, that between the first two.
struct Fold {
  size_t begin, length, count;
};

/// Covers the statements [begin, end) with folds, from first to last.
std::vector<Fold> foldStatements(const std::vector<Statement> &statements, size_t begin,
                                 size_t end);

} // namespace dualpipe::pipe_text

#endif // DUALPIPE_LIB_TARGET_PIPE_FOLDSTATEMENTS_H
