//===- Noop.h - models that compute nothing ---------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_NOOP_H
#define DUALPIPE_RUNTIME_MODELS_NOOP_H

#include "dualpipe/stage.h"

#include <cstddef>
#include <cstdint>

namespace dualpipe::models {

/// Every tensor has `bytes` bytes; each stage has one parameter. The models that are
/// made of it begin with it.
struct Noop {
  int64_t bytes = 8;
};
inline constexpr int64_t kMaxNoopBytes = int64_t(1) << 30;

dp_status noopContract(const dp_model *model, dp_contract *out);
dp_status noopTensor(const dp_model *model, uint32_t stage, dp_tensor_kind kind,
                     dp_tensor_spec *out);
uint32_t noopNumParams(const dp_model *model, uint32_t stage);
dp_status noopParam(const dp_model *model, uint32_t stage, uint32_t index, dp_tensor_spec *out);
size_t noopWorkspaceSize(const dp_model *model, uint32_t stage);

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_NOOP_H
