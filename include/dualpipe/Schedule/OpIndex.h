//===- OpIndex.h - where the op of a stage and micro-batch stands -----------===//
//
// The inverse of an order table: for each (stage, micro-batch) the place of its
// forward, of the op that makes its input gradient, and of the op that makes
// its weight gradient.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_OPINDEX_H
#define DUALPIPE_SCHEDULE_OPINDEX_H

#include "dualpipe/Schedule/Schedule.h"

#include <array>
#include <optional>
#include <vector>

namespace dualpipe {

/// A compute op by its place: rank and index in the rank's order.
struct OpRef {
  static constexpr uint32_t kNoRank = ~0u;
  uint32_t rank = kNoRank;
  uint32_t op = 0;

  bool isValid() const { return rank != kNoRank; }
  friend bool operator==(const OpRef &a, const OpRef &b) {
    return a.rank == b.rank && a.op == b.op;
  }
};

/// What an op makes. A full backward makes both gradients.
enum class Product : uint8_t { Output, InputGrad, WeightGrad };

class OpIndex {
public:
  /// Lays out the table for the pipelines of `schedule`; all places are empty.
  explicit OpIndex(const Schedule &schedule);

  /// The place for a product, or null where no pipeline has this stage and
  /// micro-batch together.
  OpRef *find(Product product, uint32_t stage, uint32_t microbatch);
  const OpRef *find(Product product, uint32_t stage, uint32_t microbatch) const {
    return const_cast<OpIndex *>(this)->find(product, stage, microbatch);
  }

  /// The op whose result op (rank, op) needs from another stage, if any: the
  /// forward of the stage before, or the input gradient of the stage after.
  /// Invalid where the op needs none. Every product must have its place.
  OpRef getProducer(uint32_t rank, size_t op) const;
  /// The op of another stage that needs the result of op (rank, op); invalid
  /// where none does.
  OpRef getConsumer(uint32_t rank, size_t op) const;

  const Schedule &getSchedule() const { return schedule; }

private:
  OpRef getNeighbour(Product product, uint32_t stage, uint32_t mb, int step) const;

  const Schedule &schedule;
  std::vector<size_t> base; ///< first place of each pipeline
  std::array<std::vector<OpRef>, 3> places;
};

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_OPINDEX_H
