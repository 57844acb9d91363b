//===- TorchCsvTest.cpp - PyTorch's action grammar --------------------------===//

#include "dualpipe/Target/TorchCsv.h"
#include "test/support/OrderText.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

TEST(TorchCsv, PrintsOpsAndPairs) {
  Schedule schedule =
      makeSchedule({makePipeline("main", {0, 1}, 0, 12)}, {"0F0 (0F1;0B0) 0I1 0W1", "1F11 1B11"});
  EXPECT_EQ(printTorchCsv(schedule), "0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\n1F11,1B11\n");
}
