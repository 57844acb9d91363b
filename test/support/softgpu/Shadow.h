//===- Shadow.h - who touched which memory last -------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_SHADOW_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_SHADOW_H

#include "Clock.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::test::softgpu {

/// An operation that touched memory: its stream, its number there, and what it was.
struct Toucher {
  uint32_t stream;
  uint32_t count;
  std::shared_ptr<const std::string> name;
};

/// The last write of every byte and the reads since, by stream.
class Shadow {
public:
  struct Conflict {
    Toucher before;
    bool beforeWrites;
  };
  /// Notes an access at `clock`; says which earlier one it is not ordered with.
  std::optional<Conflict> touch(uint64_t begin, uint64_t end, bool writes, const Toucher &toucher,
                                const Clock &clock);
  /// Forgets a range that was freed.
  void forget(uint64_t begin, uint64_t end);

private:
  struct Cell {
    uint64_t end;
    std::optional<Toucher> writer;
    std::vector<Toucher> readers;
  };
  /// Makes `at` the beginning of a cell where it is inside of one.
  void split(uint64_t at);

  std::map<uint64_t, Cell> cells; ///< by begin; they do not overlap
};

} // namespace dualpipe::test::softgpu

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_SHADOW_H
