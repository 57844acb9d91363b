//===- FileTest.cpp - the program file: what is read is what was written ----===//

#include "TestPrograms.h"

#include "dualpipe/Program/Dump.h"
#include "dualpipe/Program/Reader.h"
#include "dualpipe/Program/Writer.h"
#include "runtime/program/Container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<RankSection> serializeRanks(const Program &program) {
  std::vector<RankSection> sections;
  for (const RankProgram &rank : program.ranks)
    sections.push_back({rank.rank, serializeRank(rank)});
  return sections;
}

Bytes serialize(const Program &program) {
  return serializeProgram(program.shared, serializeRanks(program));
}

Result<Program> read(const Bytes &bytes, std::optional<uint32_t> onlyRank = {}) {
  return readProgram("x.dpx", bytes.data(), bytes.size(), onlyRank);
}

Program makeProgram() {
  return buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true});
}

/// A file in a folder of its own, removed at the end.
class FileTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *info = testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             (std::string("dualpipe-file-test-") + info->name());
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string path(const char *name) const { return (folder / name).string(); }
  size_t countFiles() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  std::filesystem::path folder;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  const Program program = makeProgram();
  ASSERT_TRUE(writeProgramFile(path("x.dpx"), program.shared, serializeRanks(program)).ok());
  Result<Program> back = readProgramFile(path("x.dpx"));
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(dumpProgram(*back), dumpProgram(program));
  EXPECT_EQ(serialize(*back), serialize(program));
  EXPECT_EQ(countFiles(), 1u);
}

TEST_F(FileTest, SameProgramSameBytes) {
  EXPECT_EQ(serialize(makeProgram()), serialize(makeProgram()));
}

TEST_F(FileTest, OneRankAlone) {
  const Program program = makeProgram();
  ASSERT_TRUE(writeProgramFile(path("x.dpx"), program.shared, serializeRanks(program)).ok());
  Result<Program> one = readProgramFile(path("x.dpx"), 2);
  ASSERT_TRUE(one.ok()) << one.message();
  ASSERT_EQ(one->ranks.size(), 1u);
  EXPECT_EQ(one->ranks[0].rank, 2u);
  EXPECT_EQ(serializeRank(one->ranks[0]), serializeRank(program.ranks[2]));
  EXPECT_THAT(readProgramFile(path("x.dpx"), 9).message(),
              HasSubstr("the file has no section for rank 9"));
}

TEST_F(FileTest, UnwritableOutputLeavesNothing) {
  const Program program = makeProgram();
  const std::string missing = path("no/such/folder/x.dpx");
  EXPECT_THAT(writeProgramFile(missing, program.shared, serializeRanks(program)).message(),
              HasSubstr("cannot write '" + missing + "': No such file or directory"));
  EXPECT_THAT(writeProgramFile(folder.string(), program.shared, {}).message(),
              HasSubstr("not a regular file"));
  EXPECT_EQ(countFiles(), 0u);
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFile) {
  std::ofstream(path("x.dpx")) << "old";
  std::filesystem::create_directory(path("y.dpx"));
  const Program program = makeProgram();
  EXPECT_FALSE(writeProgramFile(path("y.dpx"), program.shared, serializeRanks(program)).ok());
  EXPECT_EQ(std::filesystem::file_size(path("x.dpx")), 3u);
  EXPECT_EQ(countFiles(), 2u);
}

TEST_F(FileTest, NotAProgram) {
  EXPECT_THAT(readProgramFile(path("none.dpx")).message(), StartsWith("cannot open '"));
  std::ofstream(path("text.dpx")) << "schedule dualpipe(ranks P, microbatches M)\n";
  EXPECT_THAT(readProgramFile(path("text.dpx")).message(),
              HasSubstr("not a compiled program (.dpx)"));
  std::ofstream(path("empty.dpx")).close();
  EXPECT_THAT(readProgramFile(path("empty.dpx")).message(), HasSubstr("the file is empty"));
  EXPECT_FALSE(readProgramFile(folder.string()).ok());
}

TEST_F(FileTest, Versions) {
  EXPECT_TRUE(checkVersion({3, 4}, {3, 4}).ok());
  EXPECT_TRUE(checkVersion({3, 0}, {3, 4}).ok());
  EXPECT_THAT(checkVersion({3, 5}, {3, 4}).message(),
              HasSubstr("3.5, that is newer than 3.4, which this program reads"));
  EXPECT_THAT(checkVersion({4, 0}, {3, 4}).message(), HasSubstr("newer"));
  EXPECT_THAT(checkVersion({2, 9}, {3, 4}).message(), HasSubstr("older"));

  Bytes bytes = serialize(makeProgram());
  bytes[8] = kMajorVersion + 1;
  EXPECT_THAT(read(bytes).message(), StartsWith("x.dpx: written by a version of the format"));
  bytes[8] = kMajorVersion;
  bytes[10] = kMinorVersion + 1;
  EXPECT_THAT(read(bytes).message(), HasSubstr("newer"));
}

TEST_F(FileTest, EveryTruncationIsRejected) {
  const Bytes bytes = serialize(buildPipelines({.numRanks = 2, .numMicrobatches = 2}));
  ASSERT_TRUE(read(bytes).ok());
  for (size_t size = 0; size != bytes.size(); size += size < 512 ? 1 : 37) {
    const Bytes cut(bytes.begin(), bytes.begin() + ptrdiff_t(size));
    ASSERT_FALSE(read(cut).ok()) << size;
    if (size >= kHeaderSize) {
      ASSERT_THAT(read(cut).message(), HasSubstr("truncated")) << size;
    }
  }
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_THAT(read(longer).message(), HasSubstr("something follows the program"));
}

void expectFlipRejected(Bytes &bytes, size_t bit) {
  bytes[bit / 8] ^= uint8_t(1u << (bit % 8));
  ASSERT_FALSE(read(bytes).ok()) << "bit " << bit;
  bytes[bit / 8] ^= uint8_t(1u << (bit % 8));
}

TEST_F(FileTest, EveryFlippedBitIsRejected) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  Bytes bytes = serialize(program);
  const size_t front = (kHeaderSize + kEntrySize * (1 + program.ranks.size())) * 8;
  for (size_t bit = 0; bit != front; ++bit)
    expectFlipRejected(bytes, bit);
  // A step that is no multiple of 8 comes by every place in a byte.
  for (size_t bit = front; bit < bytes.size() * 8; bit += 13)
    expectFlipRejected(bytes, bit);
  EXPECT_TRUE(read(bytes).ok());
}

TEST_F(FileTest, ADamagedSectionIsNamed) {
  Bytes bytes = serialize(makeProgram());
  bytes[bytes.size() - 20] ^= 1;
  EXPECT_EQ(read(bytes).message(), "x.dpx: section 4 (rank 3) does not match its checksum");
  EXPECT_TRUE(read(bytes, 0).ok()) << "another rank's section is not read";
}

/// What checksums cannot catch: sections whose bytes were changed before they were summed.
TEST_F(FileTest, MalformedSectionsNeverCrash) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  const Bytes shared = [&] {
    const Bytes file = serializeProgram(program.shared, {});
    return Bytes(file.begin() + kHeaderSize + kEntrySize, file.end());
  }();
  std::mt19937_64 random(5);
  size_t rejected = 0;
  for (unsigned round = 0; round != 3000; ++round) {
    std::vector<Bytes> sections = {shared, serializeRank(program.ranks[0]),
                                   serializeRank(program.ranks[1])};
    Bytes &victim = sections[random() % sections.size()];
    const uint64_t numChanges = 1 + random() % 3;
    for (uint64_t change = 0; change != numChanges; ++change)
      victim[random() % victim.size()] = uint8_t(random());
    const Bytes file = packContainer({{SectionKind::Shared, 0, &sections[0]},
                                      {SectionKind::Rank, 0, &sections[1]},
                                      {SectionKind::Rank, 1, &sections[2]}});
    rejected += !read(file).ok();
  }
  // The rest changed a name, a number in a source line, or padding.
  EXPECT_GT(rejected, 1000u);
}

TEST_F(FileTest, DirectoryMustNameSectionsInOrder) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  const Bytes rank = serializeRank(program.ranks[0]);
  EXPECT_THAT(read(packContainer({})).message(), HasSubstr("the file has no shared section"));
  EXPECT_THAT(read(packContainer({{SectionKind::Rank, 0, &rank}})).message(),
              HasSubstr("section 0 has an unexpected kind or rank"));
  EXPECT_THAT(read(serializeProgram(program.shared, {{1, rank}, {0, rank}})).message(),
              HasSubstr("section 2 has an unexpected kind or rank"));
  EXPECT_THAT(read(serializeProgram(program.shared, {{1, rank}})).message(),
              HasSubstr("section 1 holds rank 0, expected rank 1"));
  const Bytes nothing(16, 0);
  EXPECT_THAT(read(serializeProgram(program.shared, {{0, nothing}})).message(),
              HasSubstr("section 1 is malformed"));
}

/// Adds to a number of the directory's entry `section` and makes the header's checksum fit again.
Bytes changeEntry(Bytes bytes, size_t section, size_t place, int change, size_t numSections) {
  bytes[kHeaderSize + section * kEntrySize + place] += uint8_t(change);
  Bytes front(bytes.begin(), bytes.begin() + ptrdiff_t(kHeaderSize + numSections * kEntrySize));
  std::fill_n(front.begin() + 24, 8, uint8_t(0));
  const uint64_t checksum = XXH3_64bits(front.data(), front.size());
  for (unsigned i = 0; i != 8; ++i)
    bytes[24 + i] = uint8_t(checksum >> (8 * i));
  return bytes;
}

TEST_F(FileTest, SectionsMustFillTheFile) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  const Bytes bytes = serialize(program);
  constexpr size_t kOffset = 8, kSize = 16;
  EXPECT_TRUE(read(changeEntry(bytes, 1, kOffset, 0, 3)).ok());
  EXPECT_THAT(read(changeEntry(bytes, 1, kOffset, 8, 3)).message(),
              HasSubstr("section 1 lies outside the file or leaves a gap"));
  EXPECT_THAT(read(changeEntry(bytes, 1, kSize, 4, 3)).message(),
              HasSubstr("section 1 lies outside the file or leaves a gap"));
  EXPECT_THAT(read(changeEntry(bytes, 2, kSize, 8, 3)).message(),
              HasSubstr("section 2 lies outside the file or leaves a gap"));
  EXPECT_THAT(read(changeEntry(bytes, 2, kSize, -8, 3)).message(),
              HasSubstr("the sections do not fill the file"));

  Bytes tooMany = bytes;
  tooMany[14] = 1;
  EXPECT_THAT(read(tooMany).message(), HasSubstr("a directory of 65539 sections does not fit"));
}

} // namespace
