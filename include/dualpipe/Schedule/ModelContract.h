//===- ModelContract.h - what the backward halves of a model may read -------===//
//
// The words of `model { … }`, and what makes a contract that no stage can meet.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_MODELCONTRACT_H
#define DUALPIPE_SCHEDULE_MODELCONTRACT_H

#include "dualpipe/Program/Contract.h"
#include "dualpipe/Schedule/OpKind.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dualpipe {

/// The stage function of a compute op.
program::Function getFunction(OpKind kind);

/// The bits of a contract that say what a half of the backward reads: `bwd`,
/// `bwd_input` or `bwd_weight`, never `fwd`.
uint32_t &readsOf(program::Contract &contract, OpKind half);
uint32_t readsOf(const program::Contract &contract, OpKind half);

/// What a half may read, as bits of SlotKind.
uint32_t getReadable(OpKind half);

/// What is wrong with a half that reads just these: text for an error, empty where
/// all is well. A half that no gradient reaches, or that knows nothing of its
/// forward, cannot be computed.
std::string findReadsFault(OpKind half, uint32_t reads);

/// The word of the language for a tensor of a stage: `input`, …, `context`.
const char *getWord(program::SlotKind kind);
/// The tensor that a word means, where a half may read it.
std::optional<program::SlotKind> findReadable(OpKind half, std::string_view word);

/// The words of a set of slot kinds in their order: "saved, grad_output".
std::string spellReads(uint32_t reads);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_MODELCONTRACT_H
