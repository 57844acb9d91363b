//===- Mlp.h - a chain of two-layer blocks, the model of the DualPipe example -===//
//
// One block takes x[tokens, hidden] to gelu(x * W1^T) * W2^T with W1[4 hidden, hidden] and
// W2[hidden, 4 hidden], as two linear layers without bias in PyTorch's layout. The last stage
// compares with its labels by mean squared error. tokens = batch * seq.
//
// With dtype=bf16, activations and the operands of products are bf16; parameters, gradients and
// every sum are float32, as under PyTorch's autocast.
//
// A stage holds `blocks` blocks. Its tensors are flat areas, each on a 64-byte
// boundary, so that every product reads and writes in place:
//
//   saved:           per block  x | h1 = x * W1^T | g = gelu(h1);  then the seed, the gradient of
//                    the scaled loss with respect to the stage's output (last stage only)
//   weight context:  per block  dy | dh1;  a block's dy is the next block's dx
//
// What a half reads: the input half `saved` and the gradient that comes in; the
// weight half `saved` and the weight context.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_MLP_H
#define DUALPIPE_RUNTIME_MODELS_MLP_H

#include "runtime/models/MlpMath.h"

#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <cstdint>
#include <memory>

namespace dualpipe::models {

/// What `--set` can change.
struct MlpSettings {
  int64_t hidden = 512;
  int64_t seq = 256;
  int64_t batch = 3;
  int64_t layers = 0; ///< blocks in all; 0 stands for one per stage
  Element type = Element::F32;
};

Result<MlpSettings> readMlpSettings(const dp_model_config &config);

/// Where the parts of the tensors stand, in bytes.
struct MlpLayout {
  int64_t tokens, hidden, wide;  ///< wide = 4 * hidden
  int64_t blocks;                ///< per stage
  size_t elementBytes;           ///< of an activation
  size_t narrowBytes, wideBytes; ///< of one activation, rounded up to the alignment

  size_t getSavedBytes() const { return size_t(blocks) * getSavedBlock() + narrowBytes; }
  size_t getContextBytes() const { return size_t(blocks) * getContextBlock(); }
  size_t getSavedBlock() const { return narrowBytes + 2 * wideBytes; }
  size_t getContextBlock() const { return narrowBytes + wideBytes; }
};

/// The model: its settings and prepared arithmetic, of the host or of a GPU. Immutable after
/// `create`, so calls may run at the same time.
class Mlp {
public:
  static Result<std::unique_ptr<Mlp>> create(const dp_model_config &config);

  const MlpSettings &getSettings() const { return settings; }
  const MlpLayout &getLayout() const { return layout; }
  size_t getWorkspaceBytes() const;

  Status init(dp_call &call) const;
  Status loadInput(dp_call &call) const;
  Status loadLabels(dp_call &call) const;

  Status forward(dp_call &call) const;
  Status backward(dp_call &call) const;
  Status backwardInput(dp_call &call) const;
  Status backwardWeight(dp_call &call) const;

private:
  Mlp() = default;
  Status forwardBlock(const dp_call &call, int64_t block, const char *x, char *h1, char *g,
                      char *y) const;
  Status backInput(const dp_call &call, char *context) const;
  Status backWeight(const dp_call &call, const char *context) const;

  MlpSettings settings;
  MlpLayout layout{};
  std::unique_ptr<MlpMath> math;
};

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_MLP_H
