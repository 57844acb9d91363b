//===- Actions.h - the cells of a schedule file -----------------------------===//

#ifndef DUALPIPE_LIB_TARGET_TORCH_ACTIONS_H
#define DUALPIPE_LIB_TARGET_TORCH_ACTIONS_H

#include "dualpipe/Support/Diagnostics.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dualpipe::torch {

enum class ActionType : uint8_t {
  F,
  I,
  W,
  B,
  BW,
  SendF,
  RecvF,
  SendB,
  RecvB,
  Unshard,
  Reshard,
  ReduceGrad,
};

inline bool isCompute(ActionType type) { return type <= ActionType::BW; }
inline bool isTransfer(ActionType type) {
  return type >= ActionType::SendF && type <= ActionType::RecvB;
}

/// The largest number of a stage or micro-batch; far beyond what anyone trains with.
inline constexpr uint32_t kMaxNumber = (1u << 24) - 1;

struct Action {
  static constexpr uint32_t kAlone = ~0u;

  ActionType type;
  uint32_t stage;
  uint32_t microbatch; ///< 0 where the type has none
  uint32_t group;      ///< the compound that it is a member of, unique on the rank; or kAlone
  uint32_t rank;
  uint32_t column; ///< the number of the cell in its line, from 1
  SourceLoc loc;
};

/// The actions as they are written: `0F1`, `2UNSHARD`.
std::string print(const Action &action);
/// "rank 0, column 3: '0F1'", the way in which every message begins.
std::string describe(const Action &action);

/// The actions of each rank in the order of the cells, empty cells left out.
using Actions = std::vector<std::vector<Action>>;

/// Reads the cells; reports those that are no actions.
Actions parseActions(std::string_view text, DiagnosticSink &sink);

} // namespace dualpipe::torch

#endif // DUALPIPE_LIB_TARGET_TORCH_ACTIONS_H
