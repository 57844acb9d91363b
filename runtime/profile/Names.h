//===- Names.h - what functions are called in a profile ---------------------===//

#ifndef DUALPIPE_RUNTIME_PROFILE_NAMES_H
#define DUALPIPE_RUNTIME_PROFILE_NAMES_H

#include "dualpipe/Program/Contract.h"

namespace dualpipe::runtime {

/// As costs are called, by program::Function.
inline constexpr const char *kFunctionNames[program::kNumFunctions] = {
    "load_input", "load_labels", "fwd", "bwd", "bwd_input", "bwd_weight"};

inline constexpr const char *kProfileFormat = "dualpipe-profile";
inline constexpr uint32_t kProfileVersion = 1;

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROFILE_NAMES_H
