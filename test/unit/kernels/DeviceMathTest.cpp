//===- DeviceMathTest.cpp - products, sums and steps on a software GPU -------===//

#include "OnGpu.h"

using namespace dualpipe;
using namespace dualpipe::kernels;
using namespace dualpipe::kernels::test;
using dualpipe::test::SoftGpuOptions;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// Multiples of 1/8 whose products and sums are exact in every type.
double getSample(int64_t i) { return double(uint64_t(i) * 29 % 31) / 8 - 2; }

template <typename T> std::vector<T> makeMatrix(int64_t count, int64_t shift) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[size_t(i)] = store<T>(getSample(i + shift));
  return values;
}

template <typename T, typename C> void checkProduct(OnGpu &on, Product product) {
  const int64_t rows = product.rows, columns = product.columns, inner = product.inner;
  const auto a = makeMatrix<T>(rows * inner, 1), b = makeMatrix<T>(inner * columns, 2);
  const auto before = makeMatrix<C>(rows * columns, 3);
  C *c = on.put(before);
  Status status = on.getMath().multiply(on.getStream(), product, on.put(a), on.put(b), c);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto got = on.get(c, before.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double wanted = product.accumulate ? double(load(before[size_t(i * columns + j)])) : 0.0;
      for (int64_t k = 0; k < inner; ++k)
        wanted += double(load(a[size_t(product.transposeA ? k * rows + i : i * inner + k)])) *
                  double(load(b[size_t(product.transposeB ? j * inner + k : k * columns + j)]));
      ASSERT_EQ(double(load(got[size_t(i * columns + j)])), double(load(store<C>(wanted))))
          << product.transposeA << product.transposeB << product.accumulate << " " << i << ", "
          << j;
    }
}

TEST(DeviceMath, ProductsOfEveryTypeAndLayout) {
  OnGpu on;
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      for (bool accumulate : {false, true}) {
        const Product shape = {5, 3, 7, transposeA, transposeB, accumulate};
        auto with = [&](Element operands, Element result) {
          Product product = shape;
          product.operands = operands;
          product.result = result;
          return product;
        };
        checkProduct<float, float>(on, with(Element::F32, Element::F32));
        checkProduct<double, double>(on, with(Element::F64, Element::F64));
        checkProduct<Bf16, Bf16>(on, with(Element::BF16, Element::BF16));
        checkProduct<Bf16, float>(on, with(Element::BF16, Element::F32));
      }
}

TEST(DeviceMath, ProductsNeedAPreparedStream) {
  OnGpu on;
  float *data = on.put(std::vector<float>(3));
  EXPECT_EQ(on.getMath().multiply(nullptr, {1, 1, 1}, data, data + 1, data + 2).message(),
            "a matrix product on a stream that was not prepared for products; put it on the "
            "compute stream of the call");
}

template <typename T> void checkMembers(OnGpu &on, Element type) {
  // More than one launch takes, twice over.
  for (size_t numMembers :
       {size_t(1), size_t(2), size_t(kMaxMembers), size_t(2 * kMaxMembers + 5)}) {
    constexpr size_t kCount = 37;
    std::vector<void *> members;
    std::vector<T> wanted(kCount, T(0));
    for (size_t member = 0; member < numMembers; ++member) {
      std::vector<T> values(kCount);
      for (size_t i = 0; i < kCount; ++i) {
        values[i] = T(std::ldexp(1.0 + double((member + i) % 7) / 3, int(member * 11 % 30)));
        wanted[i] = member == 0 ? values[i] : wanted[i] + values[i];
      }
      members.push_back(on.put(values));
    }
    ASSERT_TRUE(on.getMath().sumMembers(on.getStream(), type, members, kCount).ok());
    for (void *member : members)
      ASSERT_EQ(on.get(static_cast<T *>(member), kCount), wanted) << numMembers;
  }
}

TEST(DeviceMath, SumsOfAnyNumberOfMembers) {
  OnGpu on;
  checkMembers<float>(on, Element::F32);
  checkMembers<double>(on, Element::F64);
}

TEST(DeviceMath, StepsAndSumsKnowFloat32AndFloat64) {
  OnGpu on;
  const dp_step_state *state = on.put(std::vector<dp_step_state>{{0, 0, 0.25}});
  double *params = on.put(std::vector<double>{1, 2}), *grads = on.put(std::vector<double>{4, 8});
  ASSERT_TRUE(on.getMath().descend(on.getStream(), Element::F64, params, grads, state, 2).ok());
  EXPECT_EQ(on.get(params, 2), (std::vector<double>{0, 0}));
  EXPECT_EQ(on.getMath().descend(on.getStream(), Element::BF16, params, grads, state, 2).message(),
            "cannot update parameters of type bfloat16 on the GPU, expected float32 or float64");
  void *members[] = {params, grads};
  EXPECT_EQ(on.getMath().sumMembers(on.getStream(), Element::BF16, members, 2).message(),
            "cannot sum gradients of type bfloat16 on the GPU, expected float32 or float64");
}

TEST(DeviceMath, CopiesAndClears) {
  OnGpu on;
  int *from = on.put(std::vector<int>{1, 2, 3}), *to = on.put(std::vector<int>{7, 8, 9});
  ASSERT_TRUE(on.getMath().copy(on.getStream(), to, from, 2 * sizeof(int)).ok());
  ASSERT_TRUE(on.getMath().zero(on.getStream(), from, 2 * sizeof(int)).ok());
  ASSERT_TRUE(on.getMath().copy(on.getStream(), nullptr, nullptr, 0).ok());
  ASSERT_TRUE(on.getMath().zero(on.getStream(), nullptr, 0).ok());
  EXPECT_EQ(on.get(to, 3), (std::vector<int>{1, 2, 9}));
  EXPECT_EQ(on.get(from, 3), (std::vector<int>{0, 0, 3}));
}

/// A GPU whose first call of `function` after the place was made fails.
SoftGpuOptions failAt(const std::string &function, uint32_t number, int status) {
  SoftGpuOptions options;
  options.faults = {{function, number, status}};
  return options;
}

constexpr int kOutOfMemory = 2, kIllegalAddress = 700, kExecutionFailed = 13;

TEST(DeviceMath, FailuresSayWhatFailed) {
  {
    OnGpu on(failAt("cuLaunchKernel", 1, kIllegalAddress));
    EXPECT_THAT(
        on.getMath().launch(on.getStream(), GeluForward<float>{nullptr, nullptr, 1}).message(),
        StartsWith("launching the kernel dp_gelu_forward_f32 failed: "
                   "CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_TRUE(on.getMath().launch(on.getStream(), GeluForward<float>{nullptr, nullptr, 0}).ok());
  }
  {
    OnGpu on(failAt("cuMemcpyDtoDAsync", 1, kIllegalAddress));
    int *data = on.put(std::vector<int>{1, 2});
    EXPECT_THAT(on.getMath().copy(on.getStream(), data, data + 1, 4).message(),
                StartsWith("copying 4 bytes within the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  {
    // The first two clear cuBLAS's workspace and our memory.
    OnGpu on(failAt("cuMemsetD8Async", 3, kIllegalAddress));
    int *data = on.put(std::vector<int>{1});
    EXPECT_THAT(on.getMath().zero(on.getStream(), data, 4).message(),
                StartsWith("clearing 4 bytes of the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  {
    OnGpu on(failAt("cublasGemmStridedBatchedEx", 1, kExecutionFailed));
    float *data = on.put(std::vector<float>(9));
    EXPECT_THAT(on.getMath().multiply(on.getStream(), {1, 2, 3}, data, data, data).message(),
                StartsWith("a product of 1 x 3 by 3 x 2 (cublasGemmEx) failed: "
                           "CUBLAS_STATUS_EXECUTION_FAILED"));
  }
}

TEST(DeviceMath, CublasMustBeSetUp) {
  for (const char *function : {"cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2",
                               "cublasSetAtomicsMode", "cublasSetMathMode"}) {
    // The second: the harness has made one.
    OnGpu on(failAt(function, 2, kExecutionFailed));
    auto math = on.makeMath();
    ASSERT_FALSE(math.ok()) << function;
    const std::string name = function;
    EXPECT_THAT(math.message(), StartsWith(name.substr(0, name.find("_v2")) +
                                           " failed: CUBLAS_STATUS_EXECUTION_FAILED"));
  }
}

TEST(KernelModule, NamesWhatIsMissing) {
  dualpipe::test::SoftGpu bare;
  auto context = runtime::cuda::GpuContext::create(bare.getDriver(), 0);
  ASSERT_TRUE(context.ok());
  const runtime::cuda::ContextScope scope(*context);
  auto kernels = KernelModule::load(bare.getDriver(), dualpipe::test::getSoftImage());
  ASSERT_FALSE(kernels.ok());
  EXPECT_THAT(kernels.message(),
              StartsWith("looking up the kernel dp_fill_uniform_f32 failed: CUDA_ERROR_NOT_FOUND"));
}

TEST(KernelModule, SaysWhyAnImageCannotBeLoaded) {
  for (auto [status, text] :
       {std::pair<int, const char *>(209, "this GPU is older than the kernels, which need compute "
                                          "capability 8.0 (A100) or newer; use another GPU or "
                                          "--backend=cpu"),
        {kOutOfMemory,
         "loading the kernels (cuModuleLoadData) failed: CUDA_ERROR_OUT_OF_MEMORY"}}) {
    dualpipe::test::SoftGpu gpu(failAt("cuModuleLoadData", 1, status));
    auto context = runtime::cuda::GpuContext::create(gpu.getDriver(), 0);
    ASSERT_TRUE(context.ok());
    const runtime::cuda::ContextScope scope(*context);
    auto kernels = KernelModule::load(gpu.getDriver(), dualpipe::test::getSoftImage());
    ASSERT_FALSE(kernels.ok());
    EXPECT_THAT(kernels.message(), StartsWith(text));
  }
}

} // namespace
