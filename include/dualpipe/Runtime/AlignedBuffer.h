//===- AlignedBuffer.h - zeroed host memory on a cache-line boundary --------===//
//
// Every tensor that a stage function sees starts on a 64-byte boundary, in the
// arena of a rank as in the reference, so that vector code takes the same path.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_ALIGNEDBUFFER_H
#define DUALPIPE_RUNTIME_ALIGNEDBUFFER_H

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace dualpipe::runtime {

/// Where tensors may start, in bytes.
inline constexpr size_t kTensorAlignment = 64;

/// The next multiple of kTensorAlignment.
inline size_t alignTensor(size_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

/// Owns `size` bytes, zeroed at first, aligned to kTensorAlignment. Where memory runs out `data()`
/// is null though `size()` is not 0; see `ok()`.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size) : numBytes(size) {
    if (size == 0)
      return;
    bytes = ::operator new(size, std::align_val_t(kTensorAlignment), std::nothrow);
    if (bytes)
      std::memset(bytes, 0, size);
  }
  AlignedBuffer(AlignedBuffer &&other) noexcept { swap(other); }
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept {
    AlignedBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~AlignedBuffer() {
    if (bytes)
      ::operator delete(bytes, std::align_val_t(kTensorAlignment));
  }

  bool ok() const { return bytes || numBytes == 0; }
  void *data() { return bytes; }
  const void *data() const { return bytes; }
  size_t size() const { return numBytes; }

private:
  void swap(AlignedBuffer &other) {
    std::swap(bytes, other.bytes);
    std::swap(numBytes, other.numBytes);
  }

  void *bytes = nullptr;
  size_t numBytes = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_ALIGNEDBUFFER_H
