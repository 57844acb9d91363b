//===- Memory.h - memory of the host or of a device -------------------------===//

#ifndef DUALPIPE_RUNTIME_MEMORY_H
#define DUALPIPE_RUNTIME_MEMORY_H

#include "dualpipe/Runtime/AlignedBuffer.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace dualpipe::runtime {

/// Where tensors are. The defaults are those of the host.
class Memory {
public:
  virtual ~Memory() = default;

  /// Zeroed memory, aligned to kTensorAlignment, that lives as long as this object. Fails where
  /// memory runs out. 0 bytes give null.
  virtual Result<void *> allocate(size_t bytes) = 0;
  virtual DLDevice getPlace() const { return {kDLCPU, 0}; }
  /// Copies between memory of the host and this memory, and waits for it.
  virtual Status upload(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
  virtual Status download(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes);
  }

private:
  static Status copy(void *to, const void *from, size_t bytes) {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
    return Status::success();
  }
};

/// Memory of the host.
class HostMemory : public Memory {
public:
  Result<void *> allocate(size_t bytes) override;

private:
  std::vector<AlignedBuffer> buffers;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_MEMORY_H
