//===- OpKind.h - the kinds of compute ops ----------------------------------===//

#ifndef DUALPIPE_SCHEDULE_OPKIND_H
#define DUALPIPE_SCHEDULE_OPKIND_H

#include <cstdint>

namespace dualpipe {

/// What a compute op does for one micro-batch in one stage.
enum class OpKind : uint8_t { Forward, Backward, BackwardInput, BackwardWeight };
constexpr unsigned kNumOpKinds = 4;

/// The keyword of the language: `fwd`, `bwd`, `bwd_input`, `bwd_weight`.
const char *getKeyword(OpKind kind);
/// The letter of PyTorch's action grammar: F, B, I, W.
char getLetter(OpKind kind);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_OPKIND_H
