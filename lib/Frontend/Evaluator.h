//===- Evaluator.h - evaluates expressions ---------------------------------===//
//
// An evaluator holds the values of a schedule, a stack of frames and the notes
// that tell how the program came to a place. The set-up of a schedule uses one;
// every rank has its own, which begins with the values of the set-up. A faulty
// expression is reported once and yields poison, which is silent from there on.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_EVALUATOR_H
#define DUALPIPE_LIB_FRONTEND_EVALUATOR_H

#include "AST.h"
#include "Value.h"
#include "dualpipe/Frontend/Frontend.h"
#include "dualpipe/Schedule/Costs.h"

#include "llvm/ADT/Twine.h"

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace dualpipe::frontend {

/// A pipeline with its values filled in.
struct PipelineInfo {
  /// `down`, `down(2)`
  std::string name;
  SourceLoc loc;
  SourceLoc placementLoc;
  uint32_t numStages = 0;
  uint32_t numMicrobatches = 0;
  uint32_t firstStage = 0;
  uint32_t firstMicrobatch = 0;
  /// The rank of each stage.
  std::vector<uint32_t> placement;
  /// All stages by rank, and by number on each rank.
  std::vector<uint32_t> stagesByRank;
  /// Place of each stage among those of its rank.
  std::vector<uint32_t> ordinal;

  /// The stages on a rank, in order.
  llvm::ArrayRef<uint32_t> getStagesOn(uint32_t rank) const;
};

/// Pipelines that were declared together: `count` of them from number `firstPipeline` on,
/// which the schedule calls `begin` and up.
struct FamilyInfo {
  llvm::StringRef name;
  SourceLoc loc;
  int64_t begin = 0;
  uint32_t count = 0;
  uint32_t firstPipeline = 0;
};

/// What an evaluator knows of the schedule.
struct World {
  Limits limits;
  bool training = true;
  uint32_t numRanks = 0;
  uint32_t numMicrobatches = 0;
  /// What the schedule calls its number of ranks.
  llvm::StringRef ranksName;
  std::vector<PipelineInfo> pipelines;
  std::vector<FamilyInfo> families;
  /// Stages of all pipelines, those that share weights counted once. 0 until they are numbered.
  uint32_t numStages = 0;
  /// The schedule's own `cost`, under those of the command line.
  Costs costs;
  MemoryPlan memory;
  program::Contract model;
};

/// How the program came to the present place; lives on the stack of the
/// interpreter.
struct Context {
  enum class Kind : uint8_t { Repeat, For, Every, Call };
  const Context *parent;
  Kind kind;
  SourceLoc loc;
  /// The counter of a loop, which may be empty, or the definition.
  llvm::StringRef name;
  int64_t value = 0;
  int64_t count = 0;
};

class Evaluator {
public:
  Evaluator(const World &world, uint32_t numScheduleSlots)
      : world(world), scheduleValues(numScheduleSlots), steps(world.limits.maxSteps),
        maxSteps(steps) {}
  /// An evaluator of rank `rank`, or of none, that begins with the values of `base`.
  Evaluator(const Evaluator &base, std::optional<uint32_t> rank)
      : world(base.world), scheduleValues(base.scheduleValues), tuples(base.tuples),
        steps(base.world.limits.maxSteps), maxSteps(steps), rank(rank) {}
  Evaluator(const Evaluator &) = delete;

  Value evaluate(const Expr &expr);
  /// An integer, or nothing after a fault. `what` says what it is for.
  std::optional<int64_t> evaluateInteger(const Expr &expr, llvm::StringRef what);
  std::optional<bool> evaluateBoolean(const Expr &expr, llvm::StringRef what);
  /// The text of a string with its values filled in; empty after a fault.
  std::optional<std::string> evaluateText(const StringExpr &expr);

  /// Binds the names of a `let`.
  void bind(const LetStmt &let, Storage storage);
  void setScheduleValue(const Binding &binding, Value value) {
    scheduleValues[binding.slot] = value;
  }
  /// Opens the frame of a body that is not called from another.
  void enterFrame(uint32_t numSlots) {
    base = 0;
    frames.assign(numSlots, Value());
  }
  void setLocal(const Binding &binding, Value value) { frames[base + binding.slot] = value; }

  /// Counts steps; false once there were too many.
  bool spend(uint64_t cost, SourceLoc loc) {
    if (steps < cost) [[unlikely]]
      return failSteps(loc);
    steps -= cost;
    return true;
  }

  /// Reports a fault unless its place already has one. The diagnostic is null
  /// where nothing is reported.
  Diagnostic *error(SourceLoc loc, const llvm::Twine &message);
  /// Reports nothing from now on, or everything again.
  void setMuted(bool value) { muted = value; }
  void setSteps(uint64_t value) { steps = maxSteps = value; }
  uint64_t getSteps() const { return steps; }
  /// Expressions are those of rank `value` from now on; nothing: of no rank.
  void setRank(std::optional<uint32_t> value) { rank = value; }
  bool isStopped() const { return stopped; }
  std::vector<Diagnostic> &getFindings() { return findings; }

protected:
  Value getValue(const NameExpr &name) const {
    return name.storage == Storage::Local ? frames[base + name.slot] : scheduleValues[name.slot];
  }
  [[gnu::noinline]] bool failSteps(SourceLoc loc);
  [[gnu::noinline]] void reportKind(SourceLoc loc, llvm::StringRef expected, Value got,
                                    llvm::StringRef what);
  [[gnu::noinline]] Value evaluateMember(const CallExpr &expr);
  Value evaluateBinary(const BinaryExpr &expr);
  Value evaluateLogic(const BinaryExpr &expr);
  Value evaluateOrder(const BinaryExpr &expr, Value lhs, Value rhs);
  Value evaluateEquality(const BinaryExpr &expr, Value lhs, Value rhs);
  Value evaluateIf(const IfExpr &expr);
  [[gnu::noinline]] Value evaluateNegate(const NegateExpr &expr);
  [[gnu::noinline]] Value evaluateNot(const NotExpr &expr);
  [[gnu::noinline]] Value evaluateTuple(const TupleExpr &expr);
  [[gnu::noinline]] Value evaluateCall(const CallExpr &expr);
  [[gnu::noinline]] Value evaluateMinMax(const MinMaxExpr &expr);
  [[gnu::noinline]] Value evaluateIndex(const IndexExpr &expr);
  [[gnu::noinline]] Value evaluateStage(const StageExpr &expr);
  [[gnu::noinline]] Value evaluateString(const StringExpr &expr);
  [[gnu::noinline]] Value failArithmetic(const BinaryExpr &expr, int64_t lhs, int64_t rhs,
                                         uint8_t fault);
  Value indexPipeline(const IndexExpr &expr, uint32_t pipeline, int64_t index);
  std::optional<bool> equal(Value lhs, Value rhs, SourceLoc loc);
  bool append(std::string &text, Value value, SourceLoc loc);

  /// The frame of a call: arguments are evaluated in the caller's frame first.
  class Call {
  public:
    Call(Evaluator &evaluator, const DefDecl &def, llvm::ArrayRef<Expr *> arguments, SourceLoc loc);
    ~Call();
    Call(const Call &) = delete;
    /// False where the call must not be run.
    bool isValid() const { return valid; }

  private:
    Evaluator &evaluator;
    size_t callerBase;
    uint32_t depth;
    Context context;
    bool valid;
  };

  /// What a loop's iteration allocated is gone with it: no value outlives the
  /// block that made it.
  class Iteration {
  public:
    explicit Iteration(Evaluator &evaluator)
        : evaluator(evaluator), tuples(evaluator.tuples.size()), strings(evaluator.strings.size()) {
    }
    ~Iteration() {
      evaluator.tuples.resize(tuples);
      while (evaluator.strings.size() > strings)
        evaluator.strings.pop_back();
    }
    Iteration(const Iteration &) = delete;

  private:
    Evaluator &evaluator;
    size_t tuples;
    size_t strings;
  };

  const World &world;
  std::vector<Value> scheduleValues;
  std::vector<Value> frames;
  size_t base = 0;
  std::vector<Value> tuples;
  std::deque<std::string> strings;
  uint64_t steps;
  /// What `steps` began with.
  uint64_t maxSteps;
  uint32_t depth = 0;
  /// Nothing while the schedule is set up.
  std::optional<uint32_t> rank;
  const Context *context = nullptr;
  bool muted = false;
  bool stopped = false;
  std::vector<Diagnostic> findings;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> faultyPlaces;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_EVALUATOR_H
