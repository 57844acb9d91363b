//===- ReplayValues.h - the values of a replay, by what they are -------------===//
//
// The replay knows no slots. A value is named by what it is (an activation, a
// gradient, a saved context, ...), its stage and its micro-batch, exists from the
// call that writes it to the last call that reads it, and is the same value on
// both ends of a transfer.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_REFERENCE_REPLAYVALUES_H
#define DUALPIPE_RUNTIME_REFERENCE_REPLAYVALUES_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Memory.h"
#include "dualpipe/Runtime/Model.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace dualpipe::runtime {

/// Whether a stage function writes the tensor of a role; it reads what else it is given.
bool writesRole(program::Function function, program::SlotKind role);

class ReplayValues {
public:
  /// `memory` outlives the values.
  ReplayValues(const Model &model, Memory &memory) : model(model), memory(memory) {}

  /// Counts the reads of a launch, once per step, before anything runs.
  void expect(const program::Launch &launch);
  /// Whether everything that the launch reads exists. If not, `missing` says what does not, where
  /// it is given.
  bool isReady(const program::Launch &launch, std::string *missing = nullptr) const;
  /// Binds what the launch reads and makes what it writes. Several launches may be bound before
  /// they are released; fails where one of them writes what another uses.
  Status bind(const program::Launch &launch, StageCall &call);
  /// Lets go of what the launch was the last to read, or wrote for nobody.
  void release(const program::Launch &launch);
  /// How many values exist.
  size_t getNumLive() const { return live.size(); }

private:
  using Key = uint64_t;
  struct Value {
    void *data = nullptr;
    size_t bytes = 0;
  };
  static Key getKey(const program::Launch &launch, program::SlotKind role);
  Result<Value> make(size_t bytes);

  const Model &model;
  Memory &memory;
  std::unordered_map<Key, Value> live;         // never iterated
  std::unordered_map<Key, uint32_t> readsLeft; // never iterated
  std::unordered_map<Key, bool> bound;         // until released: whether it is written
  std::map<size_t, std::vector<void *>> spare; // by bytes
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_REFERENCE_REPLAYVALUES_H
