//===- Harness.h - launching a kernel's twin under watch ---------------------===//

#ifndef DUALPIPE_TEST_UNIT_KERNELS_HARNESS_H
#define DUALPIPE_TEST_UNIT_KERNELS_HARNESS_H

#include "runtime/kernels/KernelTwins.h"
#include "runtime/kernels/Kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace dualpipe::kernels::test {

/// More elements than the largest grid has threads. Sanitizers, fifty times as slow, look at memory
/// and not at numbers: for them it is less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kLargestSize = int64_t(kBlockThreads) * 8 + 17;
#else
inline constexpr int64_t kLargestSize = int64_t(kBlockThreads) * kMaxBlocks + 17;
#endif

/// None, one, a few, around a block, a prime, and the largest.
inline const std::vector<int64_t> kSizes = {0, 1, 2, 7, 255, 256, 257, 1009, kLargestSize};

/// Memory whose every byte is watched. Pointers stay where they are up to `kBytes`.
class Arena {
public:
  static constexpr size_t kBytes = size_t(64) << 20;

  Arena() { bytes.reserve(kBytes); }

  /// Undefined elements, with a gap behind them.
  template <typename T> T *allocate(int64_t count) {
    size_t begin = bytes.size(), end = begin + size_t(count) * sizeof(T);
    bytes.resize((end + 63) / 64 * 64 + 64, std::byte(0xa5));
    EXPECT_LE(bytes.size(), kBytes);
    return reinterpret_cast<T *>(bytes.data() + begin);
  }
  /// Elements f(0), f(1), ..., rounded to T.
  template <typename T, typename Function> T *fill(int64_t count, Function f) {
    T *values = allocate<T>(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = store<T>(f(i));
    return values;
  }

  std::vector<std::byte> bytes;
};

/// Copies what the uses of one kind cover, reads or writes, from a snapshot of the arena to
/// another.
inline void copyUses(const Arena &arena, const std::vector<MemoryUse> &uses, bool writes,
                     const std::vector<std::byte> &from, std::vector<std::byte> &to) {
  for (const MemoryUse &use : uses)
    if (use.writes == writes) {
      const auto begin = static_cast<const std::byte *>(use.data) - arena.bytes.data();
      std::copy_n(from.begin() + begin, use.bytes, to.begin() + begin);
    }
}

/// Runs the twin as the largest grid would, then with other numbers of threads: the same bits. No
/// byte changes that the twin does not declare, and none matters that it does not declare.
template <typename Kernel> void launch(Arena &arena, const Kernel &kernel) {
  const KernelTwin *twin = findKernelTwin(kKernelNames[unsigned(kKernelId<Kernel>)]);
  ASSERT_NE(twin, nullptr);
  ASSERT_EQ(twin->argumentBytes, sizeof kernel);
  const std::vector<std::byte> before = arena.bytes;
  const int64_t grid = int64_t(getNumBlocks(kernel.getSize())) * kBlockThreads;
  twin->run(&kernel, grid);
  const std::vector<std::byte> after = arena.bytes;
  for (int64_t threads : {int64_t(1), int64_t(1021)}) {
    std::copy(before.begin(), before.end(), arena.bytes.begin());
    twin->run(&kernel, threads);
    ASSERT_TRUE(arena.bytes == after) << twin->name << " depends on the number of threads";
  }
  std::vector<MemoryUse> uses;
  twin->listMemory(&kernel, uses);
  std::vector<std::byte> untouched = after;
  copyUses(arena, uses, true, before, untouched);
  ASSERT_TRUE(untouched == before) << twin->name << " writes something and does not say so";
  for (size_t i = 0; i < before.size(); ++i)
    arena.bytes[i] = before[i] ^ std::byte(0x5a);
  copyUses(arena, uses, false, before, arena.bytes);
  twin->run(&kernel, grid);
  std::vector<std::byte> again = after;
  copyUses(arena, uses, true, arena.bytes, again);
  ASSERT_TRUE(again == after) << twin->name << " reads something and does not say so";
  std::copy(after.begin(), after.end(), arena.bytes.begin());
}

/// How far a rounded result may be off, relative to its magnitude.
template <typename T> constexpr double kRounding = 4 * 0x1p-52;
template <> inline constexpr double kRounding<float> = 8 * 0x1p-23;
template <> inline constexpr double kRounding<Bf16> = 0x1p-8;

template <typename T> const char *getTypeName() { return "f64"; }
template <> inline const char *getTypeName<float>() { return "f32"; }
template <> inline const char *getTypeName<Bf16>() { return "bf16"; }

/// `wanted` in double precision; `magnitude` of what it was computed from.
template <typename T> void expectNear(T got, double wanted, double magnitude, int64_t i) {
  ASSERT_LE(std::abs(double(load(got)) - wanted), kRounding<T> * magnitude)
      << getTypeName<T>() << " element " << i << ": got " << double(load(got)) << ", expected "
      << wanted;
}

/// Numbers between -8 and 8 that are exact in every type: 7 bits.
inline double getSample(int64_t i) { return double(int64_t(uint64_t(i) * 37 % 255) - 127) / 16; }

} // namespace dualpipe::kernels::test

#endif // DUALPIPE_TEST_UNIT_KERNELS_HARNESS_H
