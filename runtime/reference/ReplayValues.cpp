//===- ReplayValues.cpp - the values of a replay, by what they are -----------===//

#include "runtime/reference/ReplayValues.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

using program::Function;
using program::Launch;
using program::SlotKind;

namespace {

/// Calls `visit` with every role that the launch has a slot for.
template <typename Visit> void forEachRole(const Launch &launch, Visit visit) {
  for (unsigned role = 0; role < program::kNumSlotKinds; ++role)
    if (launch.slots[role] != program::kNone)
      visit(SlotKind(role));
}

} // namespace

bool writesRole(Function function, SlotKind role) {
  switch (function) {
  case Function::LoadInput:
    return role == SlotKind::Input;
  case Function::LoadLabels:
    return role == SlotKind::Labels;
  case Function::Forward:
    return role == SlotKind::Output || role == SlotKind::Saved;
  case Function::Backward:
    return role == SlotKind::GradInput;
  case Function::BackwardInput:
    return role == SlotKind::GradInput || role == SlotKind::WeightContext;
  case Function::BackwardWeight:
    return false;
  }
  return false;
}

/// The output of a stage is the input of the next, its input gradient the output gradient of the
/// one before: both are named from the reader's side.
ReplayValues::Key ReplayValues::getKey(const Launch &launch, SlotKind role) {
  uint32_t stage = launch.stage;
  if (role == SlotKind::Output) {
    role = SlotKind::Input;
    stage += 1;
  } else if (role == SlotKind::GradInput) {
    role = SlotKind::GradOutput;
    stage -= 1;
  }
  // Stages and micro-batches are far below 2^30 and 2^31: a program holds an op for each.
  return uint64_t(role) << 61 | uint64_t(stage & 0x3fffffffu) << 31 | launch.microbatch;
}

void ReplayValues::expect(const Launch &launch) {
  forEachRole(launch, [&](SlotKind role) {
    if (!writesRole(launch.function, role))
      ++readsLeft[getKey(launch, role)];
  });
}

bool ReplayValues::isReady(const Launch &launch, std::string *missing) const {
  bool ready = true;
  forEachRole(launch, [&](SlotKind role) {
    if (!ready || writesRole(launch.function, role) || live.count(getKey(launch, role)))
      return;
    ready = false;
    if (missing)
      *missing = fmt::format("the {} of stage {}, micro-batch {}", describeKind(role), launch.stage,
                             launch.microbatch);
  });
  return ready;
}

Result<ReplayValues::Value> ReplayValues::make(size_t bytes) {
  std::vector<void *> &pool = spare[bytes];
  if (!pool.empty()) {
    const Value value = {pool.back(), bytes};
    pool.pop_back();
    return value;
  }
  Result<void *> data = memory.allocate(bytes);
  return data.ok() ? Result<Value>(Value{*data, bytes}) : Result<Value>(data.getStatus());
}

Status ReplayValues::bind(const Launch &launch, StageCall &call) {
  Status status = Status::success();
  forEachRole(launch, [&](SlotKind role) {
    const Key key = getKey(launch, role);
    const bool writes = writesRole(launch.function, role);
    const auto [use, isFirst] = bound.try_emplace(key, writes);
    if (!status.ok() || (!isFirst && (writes || use->second))) {
      if (status.ok())
        status = Status::failure(fmt::format(
            "the calls of a pair depend on each other: two use the {} of stage {}, micro-batch {}, "
            "and one of them writes it",
            describeKind(role), launch.stage, launch.microbatch));
      return;
    }
    Value &value = live[key];
    if (writes) {
      Result<Value> made = make(model.getBytes(launch.stage, role));
      if (made.ok())
        value = *made;
      else
        status = Status::failure(fmt::format("the {} of stage {}, micro-batch {} of the check: {}",
                                             describeKind(role), launch.stage, launch.microbatch,
                                             made.message()));
    }
    call.bind(role, value.data);
  });
  return status;
}

void ReplayValues::release(const Launch &launch) {
  forEachRole(launch, [&](SlotKind role) {
    Key key = getKey(launch, role);
    bound.erase(key);
    auto reads = readsLeft.find(key);
    if (!writesRole(launch.function, role))
      --reads->second;
    if (reads != readsLeft.end() && reads->second > 0)
      return;
    if (reads != readsLeft.end())
      readsLeft.erase(reads);
    auto value = live.find(key);
    spare[value->second.bytes].push_back(value->second.data);
    live.erase(value);
  });
}

} // namespace dualpipe::runtime
