//===- ModelSizes.h - what the stages of a model take, in bytes -------------===//
//
// The sizes of a model without the model: plain data, so that a file can hold them
// and the compiler can predict memory where no model is loaded. They are those of
// one model at its settings, cut into so many stages, with one optimizer on one kind
// of device; they serve any schedule of as many stages.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELSIZES_H
#define DUALPIPE_RUNTIME_MODELSIZES_H

#include "dualpipe/Program/Contract.h"
#include "dualpipe/Support/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dualpipe::runtime {

/// One stage, in bytes as they are allocated: rounded up to where a tensor may start.
struct StageSizes {
  /// A slot for one tensor, by SlotKind; 0 where the stage has no such tensor.
  std::array<uint64_t, program::kNumSlotKinds> tensors{};
  /// Of one copy of the stage.
  uint64_t weights = 0;
  uint64_t gradients = 0;
  uint64_t optimizerState = 0;
  /// Scratch for any function of the stage.
  uint64_t workspace = 0;

  bool operator==(const StageSizes &) const = default;
};

struct ModelSizes {
  /// Whether the members of a fused pair run as one call, each with a workspace of its own.
  bool fused = false;
  std::vector<StageSizes> stages;

  /// More than the memory of any machine: no single size is larger.
  static constexpr uint64_t kMaxBytes = uint64_t(1) << 46;

  /// Of a slot of a class: the largest tensor of the kind over the stages of the size group.
  uint64_t getSlotBytes(const program::Contract &contract, program::SlotKind kind,
                        uint32_t sizeGroup) const;
  /// What every call is given: the most over all stages.
  uint64_t getWorkspace() const;

  bool operator==(const ModelSizes &) const = default;
};

/// {"fused": false, "stages": [{"input": 1024, ..., "workspace": 512}, ...]}; docs/reports.md has
/// the names.
nlohmann::ordered_json toJson(const ModelSizes &sizes);
/// Fails where a name is missing or unknown, or a value is none: the message begins with the place,
/// "stages[3].saved".
Result<ModelSizes> readModelSizes(const nlohmann::json &json);

/// The same as text, which ends with a newline.
std::string printModelSizes(const ModelSizes &sizes);
Result<ModelSizes> parseModelSizes(std::string_view text);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_MODELSIZES_H
