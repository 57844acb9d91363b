//===- mlp_numbers.cpp - writes the numbers of a small mlp to files ---------===//
//
// mlp-numbers DIRECTORY f32|bf16|f64
//
// Two stages of two blocks, four micro-batches, one optimizer step, run through
// the stage functions with every other backward split. Writes weights, inputs,
// labels, losses, gradients and the weights after the step as raw arrays, and
// `sizes.txt`, for test_mlp_vs_torch.py to compute again with PyTorch's autograd.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace dualpipe;
using namespace dualpipe::runtime;
using program::Function;
using program::SlotKind;

namespace {

constexpr uint32_t kStages = 2, kMicrobatches = 4;
constexpr int kHidden = 24, kSeq = 5, kBatch = 3, kBlocks = 2;
constexpr double kLearningRate = 0.5;

bool writeFile(const std::string &path, const void *data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char *>(data), std::streamsize(bytes));
  return file.good();
}

/// One stage: its copy, its call and its tensors.
struct Stage {
  Stage(const Model &model, StageCopy stageCopy)
      : model(model), copy(std::move(stageCopy)), workspace(model.getMaxWorkspaceBytes()),
        call(model, state, workspace.data(), workspace.size()) {
    for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind)
      tensors[kind] = AlignedBuffer(model.getBytes(copy.getStage(), SlotKind(kind)));
  }
  Stage(const Stage &) = delete;

  bool isLast() const { return copy.getStage() + 1 == kStages; }

  bool run(Function function, uint32_t microbatch, std::initializer_list<SlotKind> kinds) {
    unsigned flags = 0;
    if (copy.getStage() == 0)
      flags |= program::kFirstStage;
    if (isLast())
      flags |= program::kLastStage;
    if (microbatch > 0)
      flags |= program::kAccumulate;
    call.begin(copy, microbatch, 0, uint8_t(flags), true);
    for (SlotKind kind : kinds)
      call.bind(kind, tensors[unsigned(kind)].data());
    call.setLoss(&loss);
    Status status = model.run(function, call);
    if (!status)
      std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.ok();
  }

  const Model &model;
  StageCopy copy;
  dp_step_state state = {0, 7, kLearningRate};
  AlignedBuffer workspace;
  StageCall call;
  std::array<AlignedBuffer, program::kNumSlotKinds> tensors;
  double loss = 0;
};

class Export {
public:
  Export(std::string directory, Stage &front, Stage &back)
      : directory(std::move(directory)), front(front), back(back) {}

  bool run() {
    bool ok = writeParams("weight");
    for (uint32_t microbatch = 0; microbatch < kMicrobatches; ++microbatch)
      ok = ok && train(microbatch);
    ok = ok && writeFile(directory + "/losses.bin", losses.data(), losses.size() * sizeof(double));
    ok = ok && writeGrads();
    for (Stage *stage : {&front, &back})
      ok = ok && descend(stage->copy, kLearningRate).ok();
    return ok && writeParams("stepped");
  }

private:
  bool train(uint32_t microbatch) {
    bool ok = front.run(Function::LoadInput, microbatch, {SlotKind::Input}) &&
              back.run(Function::LoadLabels, microbatch, {SlotKind::Labels}) &&
              writeTensor("input", microbatch, front.tensors[unsigned(SlotKind::Input)]) &&
              writeTensor("labels", microbatch, back.tensors[unsigned(SlotKind::Labels)]);
    ok = ok && front.run(Function::Forward, microbatch,
                         {SlotKind::Input, SlotKind::Output, SlotKind::Saved});
    hand(front, SlotKind::Output, back, SlotKind::Input);
    ok = ok && back.run(Function::Forward, microbatch,
                        {SlotKind::Input, SlotKind::Labels, SlotKind::Saved});
    losses.push_back(back.loss);
    ok = ok && backward(back, microbatch);
    hand(back, SlotKind::GradInput, front, SlotKind::GradOutput);
    return ok && backward(front, microbatch);
  }

  /// Full for even micro-batches, in halves for odd ones.
  static bool backward(Stage &stage, uint32_t microbatch) {
    if (microbatch % 2 == 0)
      return stage.run(Function::Backward, microbatch,
                       {SlotKind::Saved, SlotKind::GradOutput, SlotKind::GradInput});
    return stage.run(Function::BackwardInput, microbatch,
                     {SlotKind::Saved, SlotKind::GradOutput, SlotKind::GradInput,
                      SlotKind::WeightContext}) &&
           stage.run(Function::BackwardWeight, microbatch,
                     {SlotKind::Saved, SlotKind::WeightContext});
  }

  static void hand(Stage &from, SlotKind source, Stage &to, SlotKind place) {
    std::memcpy(to.tensors[unsigned(place)].data(), from.tensors[unsigned(source)].data(),
                from.tensors[unsigned(source)].size());
  }

  bool writeTensor(const std::string &what, uint32_t number, const AlignedBuffer &buffer) {
    return writeFile(directory + "/" + what + std::to_string(number) + ".bin", buffer.data(),
                     buffer.size());
  }
  bool writeEach(const std::string &what, bool grads) {
    for (Stage *stage : {&front, &back})
      for (uint32_t i = 0; i < stage->copy.getNumParams(); ++i) {
        const DLTensor &tensor = grads ? stage->copy.getGrad(i) : stage->copy.getParam(i);
        std::string name = what + std::to_string(stage->copy.getStage()) + "_" + std::to_string(i);
        if (!writeFile(directory + "/" + name + ".bin", tensor.data, getNumBytes(tensor)))
          return false;
      }
    return true;
  }
  bool writeParams(const std::string &what) { return writeEach(what, false); }
  bool writeGrads() { return writeEach("grad", true); }

  std::string directory;
  Stage &front, &back;
  std::vector<double> losses;
};

Result<StageCopy> makeCopy(const Model &model, uint32_t stage) {
  Result<StageCopy> copy = StageCopy::create(model, 0, stage, true);
  if (!copy)
    return copy;
  if (Status status = copy->initialize(model, 7); !status)
    return status;
  return copy;
}

int fail(const std::string &message) {
  std::fprintf(stderr, "mlp-numbers: %s\n", message.c_str());
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return fail("expected a directory and f32, bf16 or f64");
  ModelOptions options;
  options.name = "mlp";
  options.settings = {{"hidden", std::to_string(kHidden)},
                      {"seq", std::to_string(kSeq)},
                      {"batch", std::to_string(kBatch)},
                      {"layers", std::to_string(kStages * kBlocks)},
                      {"dtype", argv[2]}};
  options.numStages = kStages;
  options.numMicrobatches = kMicrobatches;
  Result<Model> model = Model::create(options);
  if (!model)
    return fail(model.message());
  Result<StageCopy> first = makeCopy(*model, 0), last = makeCopy(*model, 1);
  if (!first || !last)
    return fail(first ? last.message() : first.message());
  Stage front(*model, std::move(*first)), back(*model, std::move(*last));
  std::string directory = argv[1];
  std::ofstream sizes(directory + "/sizes.txt");
  sizes << "hidden " << kHidden << "\nseq " << kSeq << "\nbatch " << kBatch << "\nblocks "
        << kBlocks << "\nstages " << kStages << "\nmicrobatches " << kMicrobatches
        << "\nlearning_rate " << kLearningRate << "\n";
  if (!sizes.flush() || !Export(directory, front, back).run())
    return fail("cannot write to " + directory);
  return 0;
}
