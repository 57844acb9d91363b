//===- TestSupport.h - running stage functions and small programs by hand ---===//

#ifndef DUALPIPE_TEST_UNIT_MODELS_TESTSUPPORT_H
#define DUALPIPE_TEST_UNIT_MODELS_TESTSUPPORT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"
#include "dualpipe/Runtime/Reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace dualpipe::runtime::test {

using Settings = std::vector<std::pair<std::string, std::string>>;

inline ModelOptions makeOptions(const std::string &name, const Settings &settings,
                                uint32_t numStages, uint32_t numMicrobatches = 1) {
  ModelOptions options;
  options.name = name;
  options.settings = settings;
  options.numStages = numStages;
  options.numMicrobatches = numMicrobatches;
  return options;
}

inline Model makeModel(const std::string &name, const Settings &settings, uint32_t numStages,
                       uint32_t numMicrobatches = 1) {
  Result<Model> model = Model::create(makeOptions(name, settings, numStages, numMicrobatches));
  EXPECT_TRUE(model) << model.message();
  return std::move(*model);
}

/// The message of `Model::create`, or "" where it succeeds.
inline std::string getCreateError(const std::string &name, const Settings &settings,
                                  uint32_t numStages) {
  Result<Model> model = Model::create(makeOptions(name, settings, numStages));
  return model ? "" : model.message();
}

/// All tensors of one stage for one micro-batch, and a copy of the stage.
struct StageFixture {
  StageFixture(const Model &model, uint32_t stage, uint64_t seed = 1)
      : model(model), stage(stage), state{0, seed, 0.1}, workspace(model.getMaxWorkspaceBytes()),
        call(model, state, workspace.data(), workspace.size()), copy(makeCopy(model, stage, seed)) {
    for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind)
      tensors[kind] = AlignedBuffer(model.getBytes(stage, program::SlotKind(kind)));
  }

  static StageCopy makeCopy(const Model &model, uint32_t stage, uint64_t seed) {
    Result<StageCopy> copy = StageCopy::create(model, 0, stage, true);
    EXPECT_TRUE(copy) << copy.message();
    EXPECT_TRUE(copy->initialize(model, seed).ok());
    return std::move(*copy);
  }

  /// Calls a function with the tensors of `kinds` and the loss.
  void run(program::Function function, uint8_t flags, std::vector<program::SlotKind> kinds,
           uint32_t microbatch = 0, bool training = true) {
    call.begin(copy, microbatch, 0, flags, training);
    for (program::SlotKind kind : kinds)
      call.bind(kind, tensors[unsigned(kind)].data());
    call.setLoss(&loss);
    Status status = model.run(function, call);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  template <typename T> T *get(program::SlotKind kind) {
    return static_cast<T *>(tensors[unsigned(kind)].data());
  }
  size_t getBytes(program::SlotKind kind) const { return model.getBytes(stage, kind); }

  const Model &model;
  uint32_t stage;
  dp_step_state state;
  AlignedBuffer workspace;
  StageCall call;
  StageCopy copy;
  std::array<AlignedBuffer, program::kNumSlotKinds> tensors;
  double loss = -1;
};

inline bool sameBytes(const AlignedBuffer &a, const AlignedBuffer &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// An op of a hand-written order.
struct Op {
  program::Function function;
  uint32_t stage;
  uint32_t microbatch;
};

/// Turns an order of compute ops per rank into programs that the replay understands: loads, slots
/// by role, reductions and steps at the end, and some transfers and events that it must skip.
class ProgramBuilder {
public:
  explicit ProgramBuilder(uint32_t numRanks, uint32_t numStages, uint32_t numMicrobatches) {
    program.shared.numRanks = numRanks;
    program.shared.numStages = numStages;
    program.shared.numMicrobatches = numMicrobatches;
    program.ranks.resize(numRanks);
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      program.ranks[rank].rank = rank;
  }

  ProgramBuilder &pipeline(uint32_t firstMicrobatch, uint32_t numMicrobatches,
                           std::vector<uint32_t> placement) {
    program.shared.pipelines.push_back(
        {"p", 0, uint32_t(placement.size()), firstMicrobatch, numMicrobatches, placement});
    return *this;
  }

  /// One op, with the loading of what it needs before it.
  ProgramBuilder &op(uint32_t rank, Op op) {
    load(rank, op);
    compute(rank, op);
    return *this;
  }

  /// Ops that belong together; all loading stands before them.
  ProgramBuilder &pair(uint32_t rank, const std::vector<Op> &ops) {
    for (const Op &op : ops)
      load(rank, op);
    command(rank, program::CommandOp::Pair, uint32_t(ops.size()));
    for (const Op &op : ops)
      compute(rank, op);
    return *this;
  }

  ProgramBuilder &reduce(uint32_t stage, std::vector<uint32_t> ranks) {
    uint32_t group = uint32_t(program.shared.reduceGroups.size());
    program.shared.reduceGroups.push_back({ranks});
    for (uint32_t rank : ranks) {
      program.ranks[rank].reductions.push_back({group, stage});
      command(rank, program::CommandOp::Reduce,
              uint32_t(program.ranks[rank].reductions.size() - 1));
    }
    return *this;
  }

  ProgramBuilder &step(uint32_t rank, uint32_t stage) {
    command(rank, program::CommandOp::Step, stage);
    return *this;
  }

  ProgramBuilder &forwardOnly() {
    program.shared.training = false;
    return *this;
  }

  program::Program take() { return std::move(program); }

private:
  void load(uint32_t rank, const Op &op) {
    bool first = op.stage == 0, last = op.stage + 1 == program.shared.numStages;
    if (op.function != program::Function::Forward)
      return;
    if (first)
      launch(rank, program::Function::LoadInput, op, getEnds(first, last),
             {program::SlotKind::Input});
    if (last)
      launch(rank, program::Function::LoadLabels, op, getEnds(first, last),
             {program::SlotKind::Labels});
  }

  void compute(uint32_t rank, const Op &op) {
    using program::Function;
    using program::SlotKind;
    bool first = op.stage == 0, last = op.stage + 1 == program.shared.numStages;
    bool forward = op.function == Function::Forward, input = op.function == Function::BackwardInput;
    bool weight = op.function == Function::BackwardWeight;
    std::vector<SlotKind> roles;
    auto add = [&](bool wanted, SlotKind role) {
      if (wanted)
        roles.push_back(role);
    };
    add(forward, SlotKind::Input);
    add(forward && !last, SlotKind::Output);
    add(forward && last, SlotKind::Labels);
    add(program.shared.training, SlotKind::Saved);
    add(!forward && !weight && !last, SlotKind::GradOutput);
    add(!forward && !weight && !first, SlotKind::GradInput);
    add(input || weight, SlotKind::WeightContext);
    uint8_t flags = getEnds(first, last);
    if (op.function == Function::Backward || weight) {
      auto key = std::make_pair(rank, op.stage);
      if (std::find(begun.begin(), begun.end(), key) != begun.end())
        flags |= program::kAccumulate;
      else
        begun.push_back(key);
    }
    launch(rank, op.function, op, flags, roles);
  }

  static uint8_t getEnds(bool first, bool last) {
    return uint8_t((first ? program::kFirstStage : 0) | (last ? program::kLastStage : 0));
  }
  void command(uint32_t rank, program::CommandOp op, uint32_t arg) {
    program.ranks[rank].commands.push_back({op, 0, arg, 0});
  }
  void launch(uint32_t rank, program::Function function, Op op, uint8_t flags,
              const std::vector<program::SlotKind> &roles) {
    program::Launch launch = {function, flags, 0, op.stage, op.microbatch, {}};
    launch.slots.fill(program::kNone);
    for (program::SlotKind role : roles)
      launch.slots[unsigned(role)] = 0; // the replay has no slots, only roles
    program.ranks[rank].launches.push_back(launch);
    command(rank, program::CommandOp::Wait, 0);
    command(rank, program::CommandOp::Launch, uint32_t(program.ranks[rank].launches.size() - 1));
    command(rank, program::CommandOp::Record, 0);
  }

  program::Program program;
  std::vector<std::pair<uint32_t, uint32_t>> begun; // copies that have a gradient already
};

} // namespace dualpipe::runtime::test

#endif // DUALPIPE_TEST_UNIT_MODELS_TESTSUPPORT_H
