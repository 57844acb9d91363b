//===- EvaluatePlans.cpp - costs, memory and model of a schedule -----------===//

#include "EvaluatePlans.h"

#include "dualpipe/Schedule/ModelContract.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;
using llvm::Twine;

/// Calls `take` with the value of the clause for each index below `count`, until
/// it returns false. The value of a clause without an index is evaluated once.
static void forEachValue(Evaluator &evaluator, const MapClause &clause, uint32_t count,
                         llvm::function_ref<bool(uint32_t, Value)> take) {
  bool isMap = !clause.index.name.empty();
  Value value;
  for (uint32_t index = 0; index != count; ++index) {
    if (!evaluator.spend(isMap ? clause.value->size : 1, clause.loc))
      return;
    if (isMap || index == 0) {
      evaluator.enterFrame(1);
      if (isMap)
        evaluator.setLocal(clause.index, Value::ofInteger(index));
      value = evaluator.evaluate(*clause.value);
    }
    if (!take(index, value))
      return;
  }
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// An integer or a decimal number as ticks; what is out of range is reported.
static std::optional<Ticks> toTicks(Evaluator &evaluator, const MapClause &clause, Value value) {
  constexpr int64_t kLargest = 1'000'000'000;
  if (!value.is(Value::Kind::Integer) && !value.is(Value::Kind::Decimal)) {
    if (!value.isPoison())
      evaluator.error(clause.value->loc, "expected a number as the cost '" + clause.name +
                                             "', got " + describe(value.kind));
    return std::nullopt;
  }
  bool isWhole = value.is(Value::Kind::Integer);
  bool fits = !isWhole || (value.integer < kLargest && value.integer > -kLargest);
  Ticks ticks = fits && isWhole ? value.integer * Costs::kTicksPerUnit : value.integer;
  bool mayBeZero = clause.name == "transfer";
  if (fits && (ticks > 0 || (mayBeZero && ticks == 0)))
    return ticks;
  evaluator.error(clause.value->loc,
                  "cost '" + clause.name + "' is " +
                      (isWhole ? std::to_string(value.integer) : Costs::printTicks(value.integer)) +
                      ", expected " + (mayBeZero ? "0 or more" : "more than 0") +
                      " and less than " + Twine(kLargest));
  return std::nullopt;
}

/// A cost of one kind of op, common to all stages or for each.
static void evaluateOpCost(const World &world, Evaluator &evaluator, const MapClause &clause,
                           OpCost &cost) {
  bool isMap = !clause.index.name.empty();
  forEachValue(evaluator, clause, isMap ? world.numStages : 1, [&](uint32_t stage, Value value) {
    std::optional<Ticks> ticks = toTicks(evaluator, clause, value);
    if (ticks && isMap)
      cost.ofStage[stage] = *ticks;
    else if (ticks)
      cost.common = *ticks;
    return ticks.has_value();
  });
}

/// A cost that no stage has of its own.
static void evaluateCommonCost(Evaluator &evaluator, const MapClause &clause,
                               std::optional<Ticks> &cost) {
  if (!clause.index.name.empty()) {
    evaluator.error(clause.index.loc,
                    "cost '" + clause.name + "' is the same for all stages; expected a value");
    return;
  }
  forEachValue(evaluator, clause, 1, [&](uint32_t, Value value) {
    cost = toTicks(evaluator, clause, value);
    return true;
  });
}

void frontend::evaluateCosts(World &world, Evaluator &evaluator, const CostItem &item) {
  for (const MapClause &clause : item.clauses) {
    std::optional<OpKind> kind = llvm::StringSwitch<std::optional<OpKind>>(clause.name)
                                     .Case("fwd", OpKind::Forward)
                                     .Case("bwd", OpKind::Backward)
                                     .Case("bwd_input", OpKind::BackwardInput)
                                     .Case("bwd_weight", OpKind::BackwardWeight)
                                     .Default(std::nullopt);
    if (kind)
      evaluateOpCost(world, evaluator, clause, world.costs.of(*kind));
    else
      evaluateCommonCost(evaluator, clause,
                         clause.name == "fused" ? world.costs.fused : world.costs.transfer);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Whole units; what is out of range is reported.
static std::optional<int64_t> toUnits(Evaluator &evaluator, const MapClause &clause, Value value) {
  if (!value.is(Value::Kind::Integer)) {
    if (!value.isPoison())
      evaluator.error(clause.value->loc, "expected an integer as the memory '" + clause.name +
                                             "', got " + describe(value.kind));
    return std::nullopt;
  }
  if (value.integer >= 0 && value.integer <= MemoryPlan::kMaxUnits)
    return value.integer;
  evaluator.error(clause.value->loc, "memory '" + clause.name + "' is " + Twine(value.integer) +
                                         ", expected 0 to " + Twine(MemoryPlan::kMaxUnits));
  return std::nullopt;
}

template <typename T>
static void evaluateUnits(Evaluator &evaluator, const MapClause &clause, uint32_t count,
                          std::vector<T> &units) {
  units.reserve(count);
  forEachValue(evaluator, clause, count, [&](uint32_t, Value value) {
    std::optional<int64_t> number = toUnits(evaluator, clause, value);
    if (number)
      units.push_back(*number);
    return number.has_value();
  });
}

void frontend::evaluateMemory(World &world, Evaluator &evaluator, const MemoryItem &item) {
  for (const MapClause &clause : item.clauses) {
    if (clause.name == "activation")
      evaluateUnits(evaluator, clause, world.numStages, world.memory.activation);
    else if (clause.name == "context")
      evaluateUnits(evaluator, clause, world.numStages, world.memory.context);
    else {
      evaluateUnits(evaluator, clause, world.numRanks, world.memory.limit);
      world.memory.loc = clause.loc;
    }
  }
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

/// A size group of a stage; there are as many as stages at most.
static std::optional<uint32_t> toGroup(const World &world, Evaluator &evaluator,
                                       const MapClause &clause, Value value) {
  if (!value.is(Value::Kind::Integer)) {
    if (!value.isPoison())
      evaluator.error(clause.value->loc,
                      "expected an integer as the size group, got " + Twine(describe(value.kind)));
    return std::nullopt;
  }
  if (value.integer >= 0 && value.integer < int64_t(world.numStages))
    return uint32_t(value.integer);
  evaluator.error(clause.value->loc, "the size group is " + Twine(value.integer) +
                                         ", expected 0 to " + Twine(world.numStages - 1));
  return std::nullopt;
}

/// A group without a stage would have no size.
static void checkGroups(Evaluator &evaluator, const MapClause &clause,
                        program::Contract &contract) {
  std::vector<bool> isUsed(contract.sizeGroup.size());
  for (uint32_t group : contract.sizeGroup) {
    isUsed[group] = true;
    contract.numSizeGroups = std::max(contract.numSizeGroups, group + 1);
  }
  for (uint32_t group = 0; group != contract.numSizeGroups; ++group) {
    if (isUsed[group])
      continue;
    evaluator.error(clause.loc, "no stage is of size group " + Twine(group) +
                                    ", but one is of group " + Twine(contract.numSizeGroups - 1) +
                                    "; expected numbers without gaps from 0");
    return;
  }
}

static void evaluateGroups(const World &world, Evaluator &evaluator, const MapClause &clause,
                           program::Contract &contract) {
  contract.sizeGroup.reserve(world.numStages);
  forEachValue(evaluator, clause, world.numStages, [&](uint32_t, Value value) {
    std::optional<uint32_t> group = toGroup(world, evaluator, clause, value);
    if (group)
      contract.sizeGroup.push_back(*group);
    return group.has_value();
  });
  if (contract.sizeGroup.size() != world.numStages)
    return;
  checkGroups(evaluator, clause, contract);
  if (contract.numSizeGroups == 1)
    contract.sizeGroup.clear();
}

void frontend::evaluateModel(World &world, Evaluator &evaluator, const ModelItem &item) {
  for (const ReadsClause &clause : item.halves)
    readsOf(world.model, clause.half) = clause.reads;
  for (const MapClause &clause : item.groups)
    evaluateGroups(world, evaluator, clause, world.model);
}
