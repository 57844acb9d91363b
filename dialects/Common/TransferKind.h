//===- TransferKind.h - what a transfer carries ------------------*- C++ -*-===//
//
// An activation down the pipeline or a gradient back up: the enum that both
// dialects print as `act` and `grad`.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_COMMON_TRANSFERKIND_H
#define DUALPIPE_DIALECTS_COMMON_TRANSFERKIND_H

#include "dualpipe/Program/Program.h"

#include "mlir/IR/DialectImplementation.h"

#include "dialects/Common/Enums.h.inc"

namespace dualpipe {

/// The kind of a channel that carries `kind`: the class that the sender reads.
inline program::SlotKind getChannelKind(TransferKind kind) {
  return kind == TransferKind::Activation ? program::SlotKind::Output
                                          : program::SlotKind::GradInput;
}

/// The reverse of `getChannelKind`.
inline TransferKind getTransferKind(program::SlotKind kind) {
  return kind == program::SlotKind::Output ? TransferKind::Activation : TransferKind::Gradient;
}

} // namespace dualpipe

#endif // DUALPIPE_DIALECTS_COMMON_TRANSFERKIND_H
