//===- Memory.cpp - memory of the host ---------------------------------------===//

#include "dualpipe/Runtime/Memory.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

Result<void *> HostMemory::allocate(size_t bytes) {
  AlignedBuffer buffer(bytes);
  if (!buffer.ok())
    return Status::failure(fmt::format("not enough memory for {} bytes", bytes));
  buffers.push_back(std::move(buffer));
  return buffers.back().data();
}

} // namespace dualpipe::runtime
