//===- ReadTorchCsvTest.cpp - reading PyTorch's action grammar --------------===//

#include "dualpipe/Target/ReadTorchCsv.h"
#include "dualpipe/Target/TorchCsv.h"
#include "test/support/ReadCsv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

std::string errors(const std::string &text, TorchDialect dialect = TorchDialect::Auto) {
  TorchReadOptions options;
  options.dialect = dialect;
  return ReadSchedule(text, options).getErrors();
}
std::string remarks(const std::string &text) {
  return ReadSchedule(text).getMessages(Severity::Remark);
}
std::string reprint(const std::string &text, TorchDialect dialect = TorchDialect::Auto) {
  TorchReadOptions options;
  options.dialect = dialect;
  return printTorchCsv(ReadSchedule(text, options).schedule);
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

TEST(ReadTorchCsv, BlanksEmptyCellsLineEndsAndByteOrderMarks) {
  EXPECT_EQ(reprint("\xef\xbb\xbf 0F0 ,, \t0B0,\r\n,1F0,1B0\r\n\r\n \n"), "0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(reprint("0F0,0B0\n1F0,1B0"), "0F0,0B0\n1F0,1B0\n");
}

TEST(ReadTorchCsv, Compounds) {
  std::string text = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n";
  EXPECT_EQ(reprint("0F0,( 0F1 ; 0B0 )OVERLAP_F_B,0B1\n"), text);
}

TEST(ReadTorchCsv, ErrorsHaveRankColumnCellAndPlace) {
  ReadSchedule read("0F0,0B0\n1F0, ,  1G0\n");
  ASSERT_EQ(read.sink.diagnostics().size(), 1u);
  const Diagnostic &found = read.sink.diagnostics()[0];
  EXPECT_EQ(found.message,
            "rank 1, column 3: '1G0': unknown action 'G', expected F, I, W, B, SEND_F, RECV_F, "
            "SEND_B, RECV_B, UNSHARD, RESHARD or REDUCE_GRAD");
  EXPECT_EQ(found.loc.line, 2u);
  EXPECT_EQ(found.loc.column, 10u); // at the G
}

/// Places are told by parts of the text, and an empty part is one, too.
TEST(ReadTorchCsv, EmptyMembersOfCompoundsHaveTheirPlace) {
  const std::pair<const char *, unsigned> cells[] = {{"()OVERLAP_F_B", 6},
                                                     {"( )OVERLAP_F_B", 7},
                                                     {"(0F1; )OVERLAP_F_B", 11},
                                                     {"(;0F1)OVERLAP_F_B", 6}};
  for (auto [cell, column] : cells) {
    SCOPED_TRACE(cell);
    ReadSchedule read(std::string("0F0,") + cell + ",0B0\n");
    ASSERT_EQ(read.sink.diagnostics().size(), 1u);
    EXPECT_THAT(read.sink.diagnostics()[0].message,
                HasSubstr("': expected the number of a stage, then F, I,"));
    EXPECT_EQ(read.sink.diagnostics()[0].loc.column, column);
  }
}

TEST(ReadTorchCsv, RanksHaveALimit) {
  std::string lines;
  for (unsigned i = 0; i != 65537; ++i)
    lines += "0F0\n";
  EXPECT_EQ(errors(lines),
            "the file has more than 65536 lines, one for each rank: expected at most "
            "65536 ranks\n");
}

struct BadCell {
  const char *cell;
  const char *message;
};

class BadCells : public testing::TestWithParam<BadCell> {};

TEST_P(BadCells, AreReported) {
  EXPECT_THAT(errors("0F0," + std::string(GetParam().cell) + ",0B0\n"),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    ReadTorchCsv, BadCells,
    testing::Values(
        BadCell{"0F0x", "rank 0, column 2: '0F0x': unexpected 'x' after '0F0'"},
        BadCell{"F0", "'F0': expected the number of a stage, then F, I, W"},
        BadCell{"-1F0", "'-1F0': expected the number of a stage"},
        BadCell{"0f0", "'0f0': unknown action 'f0', expected F"},
        BadCell{"0 F0", "'0 F0': unknown action ' F0', expected F"},
        BadCell{"0F", "'0F': F needs the number of a micro-batch"},
        BadCell{"0SEND_F", "'0SEND_F': SEND_F needs the number of a micro-batch"},
        BadCell{"0UNSHARD1", "'0UNSHARD1': UNSHARD takes no micro-batch"},
        BadCell{"99999999999999999999F0", "'99999999999999999999' is too large, expected at most "
                                          "16777215"},
        BadCell{"0F16777216", "'16777216' is too large"},
        BadCell{"\"0F1\"", "'\"0F1\"': quotes do not belong in a schedule file"},
        BadCell{"0F1\x01", "'0F1\\x01': unexpected '\\x01' after '0F1'"},
        BadCell{"(0F1;0B1",
                "'(0F1;0B1': expected ')' and then OVERLAP_F_B at the end of a compound"},
        BadCell{"(0F1;0B1)OVERLAP", "expected ')' and then OVERLAP_F_B at the end of a compound"},
        BadCell{"(0F1)OVERLAP_F_B", "a compound of 1: expected from 2 to 64 actions"},
        BadCell{"()OVERLAP_F_B", "'()OVERLAP_F_B': expected the number of a stage"},
        BadCell{"(0F1;(0F2;0B1)OVERLAP_F_B)OVERLAP_F_B", "expected ')' and then OVERLAP_F_B"},
        BadCell{"(0F1;0SEND_F0)OVERLAP_F_B", "only F, I, W and B stand in a compound"}));

TEST(ReadTorchCsv, StopsAfterManyErrors) {
  std::string line;
  for (int i = 0; i != 100; ++i)
    line += "x,";
  ReadSchedule read(line + "\n" + line);
  EXPECT_EQ(read.sink.numErrors(), 21u);
  EXPECT_THAT(read.getErrors(), HasSubstr("too many errors: the rest of the file is not read\n"));
}

TEST(ReadTorchCsv, EmptyFilesAndLines) {
  EXPECT_EQ(errors(""), "the file is empty: expected one line for each rank\n");
  EXPECT_EQ(errors("\n \r\n"), "the file is empty: expected one line for each rank\n");
  EXPECT_EQ(errors("0F0,0B0\n\n1F0,1B0\n"),
            "rank 1: the line has no F, I, W or B: expected one line for each rank, with what it "
            "computes\n");
}

TEST(ReadTorchCsv, ActionsThatStandTwice) {
  ReadSchedule read("0F0,0B0,0F0\n1F0,1B0,0B0\n");
  EXPECT_EQ(read.getErrors(), "rank 0, column 3: '0F0': the action stands a second time\n"
                              "rank 1, column 3: '0B0': the action stands a second time\n");
  EXPECT_EQ(read.getNotes(), "rank 0, column 1: '0F0' is here\nrank 0, column 2: '0B0' is here\n");
  std::string line;
  for (int i = 0; i != 30; ++i)
    line += "0F0,";
  EXPECT_THAT(errors(line), HasSubstr("9 more actions stand a second time and are not shown\n"));
}

TEST(ReadTorchCsv, WhatIsLeftOut) {
  ReadSchedule read("0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n");
  EXPECT_EQ(read.getErrors(), "");
  EXPECT_EQ(read.getMessages(Severity::Warning),
            "rank 0, column 1: '0UNSHARD': 2 UNSHARD and RESHARD actions are left out: parameters "
            "are not sharded here\n"
            "rank 0, column 5: '0REDUCE_GRAD': 1 REDUCE_GRAD actions are left out: where gradients "
            "are summed follows from the copies of a stage\n");
}

//===----------------------------------------------------------------------===//
// Dialects
//===----------------------------------------------------------------------===//

TEST(ReadTorchCsv, TheOlderDialectIsFoundByItsFullBackward) {
  std::string text = "0F0,0F1,0BW0,0B1,0W1\n";
  EXPECT_EQ(reprint(text), "0F0,0F1,0B0,0I1,0W1\n");
  EXPECT_THAT(remarks(text), HasSubstr("rank 0, column 3: '0BW0': read as the older dialect, in "
                                       "which B is the input half and BW the full backward\n"));
}

TEST(ReadTorchCsv, TheOlderDialectByOption) {
  EXPECT_EQ(reprint("0F0,0B0,0W0\n", TorchDialect::Legacy), "0F0,0I0,0W0\n");
}

TEST(ReadTorchCsv, AmbiguousFilesAreNotGuessed) {
  ReadSchedule read("0F0,0B0,0W0\n");
  EXPECT_EQ(read.getErrors(),
            "rank 0, column 3: '0W0': its stage and micro-batch have a B too, and a full backward "
            "leaves no weight half; if B is the input half, as in files of about 2024, pass "
            "--csv-dialect=legacy\n");
  EXPECT_EQ(read.getNotes(), "rank 0, column 2: '0B0' is here\n");
  EXPECT_THAT(errors("0F0,0B0,0W0\n", TorchDialect::Current), StartsWith("S2: "));
}

TEST(ReadTorchCsv, MixedDialects) {
  ReadSchedule read("0F0,0BW0,0F1,0I1,0W1\n");
  EXPECT_EQ(read.getErrors(), "rank 0, column 4: '0I1': the older dialect, of BW, has no I: it "
                              "writes B for the input half\n");
  EXPECT_EQ(read.getNotes(), "rank 0, column 2: '0BW0' is here\n");
  EXPECT_EQ(errors("0F0,0BW0\n", TorchDialect::Current),
            "rank 0, column 2: '0BW0': BW is of the older dialect, in which B is the input half: "
            "pass --csv-dialect=legacy\n");
}

TEST(WriteTorchCsv, TheOlderDialect) {
  Schedule schedule = ReadSchedule("0F0,0F1,0B0,0I1,0W1\n").schedule;
  EXPECT_EQ(printTorchCsv(schedule, {/*legacy=*/true}), "0F0,0F1,0BW0,0B1,0W1\n");
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

TEST(InferPipelines, NamesTheShapes) {
  EXPECT_EQ(remarks("0F0,0B0\n1F0,1B0\n"),
            "placement: stages 0 to 1 one after the other over 2 ranks, micro-batches 0 to 0\n");
  EXPECT_EQ(remarks("1F0,1B0\n0F0,0B0\n"),
            "placement: stages 0 to 1 in reverse over 2 ranks, micro-batches 0 to 0\n");
  EXPECT_EQ(
      remarks("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n"),
      "placement: stages 0 to 3 in a loop over 2 ranks, 2 stages each, micro-batches 0 to 0\n");
  EXPECT_EQ(remarks("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"),
            "placement: stages 0 to 3 in a V over 2 ranks, 2 stages each, micro-batches 0 to 0\n");
  EXPECT_EQ(
      remarks("0F0,3F0,4F0,4B0,3B0,0B0\n1F0,2F0,5F0,5B0,2B0,1B0\n"),
      "placement: stages 0 to 5 in waves over 2 ranks, 3 stages each, micro-batches 0 to 0\n");
  EXPECT_EQ(remarks("0F0,0B0\n2F0,2B0\n1F0,1B0\n"),
            "placement: stages 0 to 2 on ranks 0, 2, 1, micro-batches 0 to 0\n");
}

TEST(InferPipelines, TwoDirections) {
  ReadSchedule read("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n");
  EXPECT_EQ(read.getErrors(), "");
  ASSERT_EQ(read.schedule.pipelines.size(), 2u);
  EXPECT_THAT(read.schedule.pipelines[0].placement, ElementsAre(0, 1));
  EXPECT_THAT(read.schedule.pipelines[1].placement, ElementsAre(1, 0));
  EXPECT_EQ(read.schedule.pipelines[1].firstMicrobatch, 1u);
  EXPECT_THAT(read.getMessages(Severity::Remark),
              HasSubstr("stages 0 to 1 stand on several ranks: each has a copy of the weights, and "
                        "their gradients are summed\n"));
}

TEST(InferPipelines, SeparateChains) {
  ReadSchedule read("0F0,0B0,2F1,2B1\n1F0,1B0,3F1,3B1\n");
  EXPECT_EQ(read.getErrors(), "");
  ASSERT_EQ(read.schedule.pipelines.size(), 2u);
  EXPECT_EQ(read.schedule.pipelines[1].firstStage, 2u);
}

TEST(InferPipelines, AMissingForwardIsFoundByTheChecker) {
  EXPECT_EQ(errors("0F0,0B0,0F1,0B1\n1F0,1B0,1B1\n"),
            "S1: rank 1 never runs the forward of stage 1, micro-batch 1 (pipeline 'main')\n");
}

TEST(InferPipelines, Gaps) {
  EXPECT_EQ(errors("0F0,0B0\n2F0,2B0\n"),
            "no rank runs a forward of stage 1, although there is a stage 2: expected numbers from "
            "0 without a gap\n");
  EXPECT_EQ(errors("0F0,0B0,0F2,0B2\n"),
            "no rank runs a forward of micro-batch 1, although there is a micro-batch 2: expected "
            "numbers from 0 without a gap\n");
  EXPECT_EQ(errors("0B0\n"), "the file has no forward: expected cells like '0F0'\n");
  EXPECT_EQ(errors("0F0,2F0\n1F1,3F1\n"),
            "the micro-batches of stage 2 visit stage 0 too, but not stage 1 between: expected the "
            "stages of a pipeline to follow each other\n");
}

TEST(InferPipelines, AStageThatNoMicrobatchOfItsPipelineVisits) {
  EXPECT_EQ(errors("0F0,1F1,1B1\n1F0,1B0,0B0,0F1,0B1\n2F0,2B0\n"),
            "no rank runs a forward of stage 2 for micro-batches 1 to 1, which visit the stages "
            "beside it\n");
}

TEST(InferPipelines, FewActionsWithLargeNumbersAskForNoLargeTable) {
  std::string text = "0F0";
  for (int i = 1; i != 200; ++i)
    text += "," + std::to_string(i) + "F0,0F" + std::to_string(i);
  EXPECT_EQ(errors(text),
            "only 399 of the 40000 forwards are in the file: every micro-batch visits "
            "every stage of its pipeline\n");
}

TEST(InferPipelines, PlacementsThatChangeAllTheTime) {
  std::string a, b;
  for (int mb = 0; mb != 300; ++mb)
    (mb % 2 ? a : b) += "0F" + std::to_string(mb) + ",";
  EXPECT_EQ(errors(a + "\n" + b + "\n"),
            "the placement of the stages changes from micro-batch to micro-batch: expected at most "
            "256 runs of micro-batches with a placement each\n");
  EXPECT_THAT(remarks("0F0,0F2,0F4\n0F1,0F3,0F5\n"),
              HasSubstr("placement: 2 more runs of micro-batches have one of their own\n"));
}

TEST(InferPipelines, ForwardOnly) {
  ReadSchedule read("0F0,0F1\n1F0,1F1\n");
  EXPECT_FALSE(read.schedule.training);
  EXPECT_EQ(read.getErrors(), "");
  EXPECT_THAT(read.getMessages(Severity::Remark),
              HasSubstr("the file has no backward: forward only\n"));
}

//===----------------------------------------------------------------------===//
// Any text
//===----------------------------------------------------------------------===//

const std::string kSample = "0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0I1,0W1\n"
                            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1BW1,1SEND_B1,1REDUCE_GRAD\n";

TEST(ReadTorchCsv, EveryTruncationIsReadOrRejected) {
  for (size_t size = 0; size != kSample.size(); ++size) {
    ReadSchedule read(kSample.substr(0, size));
    EXPECT_EQ(read.isRead, read.schedule.numRanks != 0);
    EXPECT_TRUE(read.isRead || read.sink.hasErrors()) << size;
  }
}

TEST(ReadTorchCsv, EveryChangedByteIsReadOrRejected) {
  for (size_t place = 0; place != kSample.size(); ++place)
    for (char byte : {'\0', '\xff', '0', '9', 'F', 'B', ',', ';', '(', ')', '\n', '\r', ' '}) {
      std::string text = kSample;
      text[place] = byte;
      ReadSchedule read(text);
      EXPECT_TRUE(read.isRead || read.sink.hasErrors()) << place;
    }
}

//===----------------------------------------------------------------------===//
// --share
//===----------------------------------------------------------------------===//

ReadSchedule readShared(const std::string &text, const std::string &share) {
  TorchReadOptions options;
  options.shared.push_back(*parseSharedStages(share));
  return ReadSchedule(text, options);
}

TEST(SharedStages, OwnNumbersForTheStagesOfTheSecondDirection) {
  ReadSchedule read = readShared("0F0,3F1,3B1,0B0\n1F0,2F1,1B0,2B1\n", "0-1,2-3");
  // Stage 2 is the first of its direction, on rank 1.
  EXPECT_EQ(read.getErrors(), "");
  EXPECT_EQ(printTorchCsv(read.schedule), "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n");
}

TEST(SharedStages, MicrobatchesThatBothDirectionsCountFromZero) {
  ReadSchedule read = readShared("0F0,3F0,3B0,0B0\n1F0,2F0,1B0,2B0\n", "0-1,2-3");
  EXPECT_EQ(printTorchCsv(read.schedule), "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n");
  EXPECT_EQ(read.schedule.numMicrobatches, 2u);
}

TEST(SharedStages, BadRanges) {
  EXPECT_EQ(parseSharedStages("0-1").message(), "'0-1': expected at least two ranges of stages");
  EXPECT_EQ(parseSharedStages("0-1,x").message(),
            "'0-1,x': expected ranges of stages like 0-3,4-7");
  EXPECT_EQ(parseSharedStages("0,1").message(), "'0,1': expected ranges of stages like 0-3,4-7");
  EXPECT_EQ(parseSharedStages("").message(), "'': expected ranges of stages like 0-3,4-7");
  EXPECT_EQ(parseSharedStages("0-1,1-2").message(),
            "'0-1,1-2': expected ascending ranges of stages that do not overlap");
  EXPECT_EQ(parseSharedStages("0-1,2-4").message(),
            "'0-1,2-4': stages 2 to 4 are 3, expected 2, as in the first range");
  EXPECT_EQ(readShared("0F0,0B0\n", "0-0,1-1").getErrors(),
            "--share: stages 1 to 1 are in no action of the file\n");
}

TEST(SharedStages, NumbersOfMicrobatchesStayInTheirRange) {
  EXPECT_EQ(readShared("0F16777215,1F3,1F7\n", "0-0,1-1").getErrors(),
            "--share: micro-batch 7 of stages 1 to 1 would be number 16777220, expected at most "
            "16777215: let the ranges use fewer micro-batches\n");
  // Range by range the numbers grow: 257 times 2 to the 24th is beyond 32 bits.
  std::string cells, ranges;
  for (unsigned stage = 0; stage != 257; ++stage) {
    cells += fmt::format("{0}F0,{0}F16777215,", stage);
    ranges += fmt::format("{0}{1}-{1}", stage == 0 ? "" : ",", stage);
  }
  EXPECT_EQ(readShared(cells + "\n", ranges).getErrors(),
            "--share: micro-batch 16777215 of stages 1 to 1 would be number 33554431, expected at "
            "most 16777215: let the ranges use fewer micro-batches\n");
}

//===----------------------------------------------------------------------===//
// What PyTorch cannot run
//===----------------------------------------------------------------------===//

TEST(WriteTorchCsv, WarnsOfTwoDirections) {
  DiagnosticSink sink;
  warnWhatTorchCannotRun(ReadSchedule("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n").schedule, sink);
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(sink.diagnostics()[0].message,
            "PyTorch cannot run this schedule: stage 0 is on ranks 0 and 1, and PyTorch keeps a "
            "stage on one rank, the same for all micro-batches; dualpipe-opt reads the file");
  warnWhatTorchCannotRun(ReadSchedule("0F0,0B0\n1F0,1B0\n").schedule, sink);
  EXPECT_EQ(sink.diagnostics().size(), 1u);
  for (auto [file, ranks] : {std::pair("0F0\n0F1\n0F2\n", "ranks 0 to 2,"),
                             std::pair("0F0\n1F3\n0F1\n0F2\n", "ranks 0, 2 and 3,")}) {
    DiagnosticSink more;
    warnWhatTorchCannotRun(ReadSchedule(file).schedule, more);
    ASSERT_EQ(more.diagnostics().size(), 1u);
    EXPECT_THAT(more.diagnostics()[0].message, HasSubstr(ranks));
  }
  std::string many;
  for (unsigned i = 0; i != 10; ++i)
    many += fmt::format("1F{}\n0F{}\n", 10 + i, i);
  DiagnosticSink more;
  warnWhatTorchCannotRun(ReadSchedule(many).schedule, more);
  ASSERT_EQ(more.diagnostics().size(), 1u);
  EXPECT_THAT(more.diagnostics()[0].message,
              HasSubstr("ranks 1, 3, 5, 7, 9, 11, 13, 15 and 2 more,"));
}

} // namespace
