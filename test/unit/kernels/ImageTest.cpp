//===- ImageTest.cpp - the binary has the kernels that the twins have --------===//

#include "runtime/kernels/KernelImage.h"
#include "runtime/kernels/KernelTwins.h"
#include "runtime/kernels/Kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

using namespace dualpipe;
using namespace dualpipe::kernels;

namespace {

std::set<std::string> getWantedNames() {
  return {std::begin(kKernelNames), std::end(kKernelNames)};
}

TEST(KernelTwins, OnePerKernelByName) {
  std::set<std::string> names;
  for (const KernelTwin &twin : getKernelTwins()) {
    EXPECT_EQ(findKernelTwin(twin.name), &twin);
    names.insert(twin.name);
  }
  EXPECT_EQ(names, getWantedNames());
  EXPECT_EQ(names.size(), kNumKernels);
  EXPECT_EQ(findKernelTwin("dp_gelu_forward"), nullptr);
}

#ifdef DUALPIPE_KERNEL_IMAGE

TEST(KernelImage, IsTheFileThatNvccWrote) {
  std::ifstream file(DUALPIPE_KERNEL_IMAGE, std::ios::binary);
  const std::string wanted((std::istreambuf_iterator<char>(file)), {});
  auto image = getKernelImage();
  ASSERT_TRUE(image.ok()) << image.message();
  ASSERT_GT(wanted.size(), 1000u);
  EXPECT_EQ(std::string(image->begin(), image->end()), wanted);
}

/// The names in `text` between `before` and `after`.
std::set<std::string> findNames(std::string_view text, std::string_view before, char after) {
  std::set<std::string> names;
  for (size_t at = 0; (at = text.find(before, at)) != std::string_view::npos;) {
    at += before.size();
    names.emplace(text.substr(at, text.find(after, at) - at));
  }
  return names;
}

/// Of an ELF image for a GPU, as nvcc writes it: 80, 90, ... (Its ABI 8 moved the number up a
/// byte.)
unsigned getArchitecture(std::string_view elf) {
  constexpr size_t kAbiVersion = 8, kFlags = 48;
  return uint8_t(elf[kAbiVersion] >= 8 ? elf[kFlags + 1] : elf[kFlags]);
}

TEST(KernelImage, HasEveryKernelForEveryArchitecture) {
  auto image = getKernelImage();
  ASSERT_TRUE(image.ok());
  const std::string_view bytes(reinterpret_cast<const char *>(image->data()), image->size());
  const std::string_view magic = "\x7f"
                                 "ELF";
  std::set<unsigned> architectures;
  for (size_t at = bytes.find(magic); at != std::string_view::npos;) {
    const size_t next = bytes.find(magic, at + 1);
    const std::string_view elf = bytes.substr(at, next - at);
    architectures.insert(getArchitecture(elf));
    EXPECT_EQ(findNames(elf, std::string_view("\0.text.", 7), '\0'), getWantedNames())
        << "sm_" << getArchitecture(elf);
    at = next;
  }
  EXPECT_EQ(architectures, std::set<unsigned>({DUALPIPE_KERNEL_ARCHITECTURES}));
  EXPECT_NE(bytes.find(".target sm_80"), std::string_view::npos) << "no PTX";
  EXPECT_EQ(findNames(bytes, ".entry ", '('), getWantedNames());
}

#else

TEST(KernelImage, SaysWhyItIsMissing) {
  auto image = getKernelImage();
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(
      image.message(),
      testing::StartsWith(
          "this build has no GPU kernels: no nvcc of CUDA 12.0 or later was found when it "
          "was configured; install the CUDA toolkit or set -DDUALPIPE_NVCC=PATH, and build again"));
  GTEST_LOG_(INFO) << "no nvcc: the kernels were not compiled for a GPU";
}

#endif

} // namespace
