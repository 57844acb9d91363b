//===- ExpectRight.h - programs that must run right on GPUs made of software -------===//

#ifndef DUALPIPE_TEST_UNIT_CUDA_EXPECTRIGHT_H
#define DUALPIPE_TEST_UNIT_CUDA_EXPECTRIGHT_H

#include "test/support/Subject.h"
#include "test/support/softrun/SoftRun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dualpipe::test {

inline constexpr SoftTransport kTransports[] = {SoftTransport::Copies, SoftTransport::Nccl,
                                                SoftTransport::Folded};

/// Every transport in several orders: nothing to report, and the results of one device.
/// `makeOptions` gets the transport and the GPUs' own options; `look` sees each run.
template <typename MakeOptions, typename Look>
void expectRight(const Subject &subject, MakeOptions &&makeOptions, Look &&look) {
  for (const SoftTransport transport : kTransports)
    for (uint64_t seed = 0; seed != 6; ++seed) {
      SCOPED_TRACE(testing::Message() << "transport " << int(transport) << ", seed " << seed);
      const SoftGpuOptions gpu = {.seed = seed, .inProgress = uint32_t(seed % 4)};
      const SoftRunResult run = runOnSoftGpus(subject.program, makeOptions(transport, gpu));
      EXPECT_EQ(run.failure, "");
      EXPECT_THAT(run.reports, testing::IsEmpty());
      if (run.failure.empty()) {
        EXPECT_EQ(subject.compare(run.result), "");
      }
      look(run);
    }
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_CUDA_EXPECTRIGHT_H
