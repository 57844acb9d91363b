//===- MathOneDnn.cpp - float32 matrix products and GELU through oneDNN ----===//
//
// Primitives are made once per shape, with their scratchpad left to the caller:
// that is what makes running one from several threads safe.
//
//===----------------------------------------------------------------------===//

#include "runtime/models/Math.h"

#include <dnnl.hpp>
#include <omp.h>

#include <algorithm>
#include <string>
#include <utility>

namespace dualpipe::models {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;

/// Debian's oneDNN is built on OpenMP and would start a team of threads in every rank. The number
/// is a setting of the calling thread, given back at the end of the scope. Primitives plan for the
/// number of threads they are made with, so making them needs the same.
class SingleThread {
public:
  SingleThread() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThread() { omp_set_num_threads(before); }
  SingleThread(const SingleThread &) = delete;
  SingleThread &operator=(const SingleThread &) = delete;

private:
  int before;
};

const dnnl::engine &getEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr getAttributes(bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

Status describe(const char *what, const dnnl::error &error) {
  return Status::failure(std::string("oneDNN cannot run ") + what + ": " + error.what());
}

dnnl::memory wrap(const dnnl::memory::desc &desc, const void *data) {
  return dnnl::memory(desc, getEngine(), const_cast<void *>(data));
}

class OneDnnProduct : public MatrixProduct {
public:
  explicit OneDnnProduct(const ProductShape &shape)
      : a({shape.rows, shape.inner}, kFloat, shape.transposeA ? Tag::ba : Tag::ab),
        b({shape.inner, shape.columns}, kFloat, shape.transposeB ? Tag::ba : Tag::ab),
        c({shape.rows, shape.columns}, kFloat, Tag::ab) {
    dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, c), getAttributes(shape.accumulate),
                                      getEngine());
    scratchpad = desc.scratchpad_desc();
    primitive = dnnl::matmul(desc);
  }

  Status run(const void *dataA, const void *dataB, void *dataC, void *scratch) const override {
    SingleThread single;
    try {
      dnnl::stream stream(getEngine());
      primitive.execute(stream, {{DNNL_ARG_SRC, wrap(a, dataA)},
                                 {DNNL_ARG_WEIGHTS, wrap(b, dataB)},
                                 {DNNL_ARG_DST, wrap(c, dataC)},
                                 {DNNL_ARG_SCRATCHPAD, wrap(scratchpad, scratch)}});
    } catch (const dnnl::error &error) {
      return describe("a matrix product", error);
    }
    return Status::success();
  }
  size_t getScratchBytes() const override { return scratchpad.get_size(); }

private:
  dnnl::memory::desc a, b, c, scratchpad;
  dnnl::primitive primitive;
};

class OneDnnGelu : public Gelu {
public:
  explicit OneDnnGelu(int64_t numElements) : vector({numElements}, kFloat, Tag::a) {
    constexpr auto kGelu = dnnl::algorithm::eltwise_gelu_erf;
    dnnl::eltwise_forward::primitive_desc up(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, kGelu, vector),
        getAttributes(false), getEngine());
    dnnl::eltwise_backward::primitive_desc down(dnnl::eltwise_backward::desc(kGelu, vector, vector),
                                                getAttributes(false), getEngine(), up);
    scratchBytes = std::max(up.scratchpad_desc().get_size(), down.scratchpad_desc().get_size());
    forwardPrimitive = dnnl::eltwise_forward(up);
    backwardPrimitive = dnnl::eltwise_backward(down);
  }

  Status forward(const void *in, void *out) const override {
    return execute(forwardPrimitive,
                   {{DNNL_ARG_SRC, wrap(vector, in)}, {DNNL_ARG_DST, wrap(vector, out)}});
  }
  Status backward(const void *in, const void *gradOut, void *gradIn) const override {
    return execute(backwardPrimitive, {{DNNL_ARG_SRC, wrap(vector, in)},
                                       {DNNL_ARG_DIFF_DST, wrap(vector, gradOut)},
                                       {DNNL_ARG_DIFF_SRC, wrap(vector, gradIn)}});
  }

  /// What the primitives would need and are not given.
  size_t getScratchBytes() const { return scratchBytes; }

private:
  static Status execute(const dnnl::primitive &primitive,
                        const std::unordered_map<int, dnnl::memory> &arguments) {
    SingleThread single;
    try {
      dnnl::stream stream(getEngine());
      primitive.execute(stream, arguments);
    } catch (const dnnl::error &error) {
      return describe("GELU", error);
    }
    return Status::success();
  }

  dnnl::memory::desc vector;
  size_t scratchBytes = 0;
  dnnl::primitive forwardPrimitive, backwardPrimitive;
};

} // namespace

Result<std::unique_ptr<MatrixProduct>> createOneDnnProduct(const ProductShape &shape) {
  SingleThread single;
  try {
    return std::unique_ptr<MatrixProduct>(std::make_unique<OneDnnProduct>(shape));
  } catch (const dnnl::error &error) {
    return describe("a matrix product", error);
  }
}

Result<std::unique_ptr<Gelu>> createOneDnnGelu(int64_t numElements) {
  SingleThread single;
  try {
    auto gelu = std::make_unique<OneDnnGelu>(numElements);
    if (gelu->getScratchBytes() != 0)
      return Status::failure("this oneDNN needs a scratchpad for GELU, expected none; build with "
                             "-DDUALPIPE_PLAIN_MATH=ON");
    return std::unique_ptr<Gelu>(std::move(gelu));
  } catch (const dnnl::error &error) {
    return describe("GELU", error);
  }
}

} // namespace dualpipe::models
