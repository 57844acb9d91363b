//===- Products.h - the matrix products of the mlp on their own -------------===//
//
// What the benchmarks of the `mlp` compare with, measured in the same run.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_BENCHMARKS_PRODUCTS_H
#define DUALPIPE_BENCHMARKS_PRODUCTS_H

#include "runtime/models/Math.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace dualpipe::benchmarks {

using runtime::AlignedBuffer;

/// CPU time of this thread: what else runs on the machine does not count.
inline double getCpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// The six products of a block, as the model runs them.
class Products {
public:
  Products(models::Real type, int64_t tokens, int64_t hidden) {
    int64_t t = tokens, h = hidden, w = 4 * hidden;
    size_t bytes = models::getBytes(type);
    for (int64_t size : {t * h, t * w, w * h})
      buffers.emplace_back(size_t(size) * bytes);
    // Rows, columns, inner; buffers of A, B and C by size: 0 = [t, h], 1 = [t, w], 2 = weights.
    add(type, {t, w, h, false, true, false}, 0, 2, 1);
    add(type, {t, h, w, false, true, false}, 1, 2, 0);
    add(type, {t, w, h, false, false, false}, 0, 2, 1);
    add(type, {t, h, w, false, false, false}, 1, 2, 0);
    add(type, {w, h, t, true, false, true}, 1, 0, 2);
    add(type, {h, w, t, true, false, true}, 0, 1, 2);
  }

  std::string run() {
    for (Entry &entry : entries)
      if (Status status = entry.product->run(buffers[entry.a].data(), buffers[entry.b].data(),
                                             buffers[entry.c].data(), scratch.data());
          !status)
        return status.message();
    return problem;
  }

private:
  struct Entry {
    std::unique_ptr<models::MatrixProduct> product;
    size_t a, b, c;
  };
  void add(models::Real type, const models::ProductShape &shape, size_t a, size_t b, size_t c) {
    auto product = models::createMatrixProduct(type, shape);
    if (!product) {
      problem = product.message();
      return;
    }
    if ((*product)->getScratchBytes() > scratch.size())
      scratch = AlignedBuffer((*product)->getScratchBytes());
    entries.push_back({std::move(*product), a, b, c});
  }

  std::vector<AlignedBuffer> buffers;
  std::vector<Entry> entries;
  AlignedBuffer scratch;
  std::string problem;
};

} // namespace dualpipe::benchmarks

#endif // DUALPIPE_BENCHMARKS_PRODUCTS_H
