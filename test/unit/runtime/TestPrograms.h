//===- TestPrograms.h - small programs, built by hand -----------------------===//
//
// Programs for tests of the runtime, made without the compiler: pipelines over a
// few ranks, every value in a slot of its own, every transfer right behind its
// producer in the lists of both ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_UNIT_RUNTIME_TESTPROGRAMS_H
#define DUALPIPE_TEST_UNIT_RUNTIME_TESTPROGRAMS_H

#include "dualpipe/Program/Program.h"

#include <map>

namespace dualpipe::test {

/// Collects one rank's commands. Slots are numbered within their kind until `finish`.
class RankBuilder {
public:
  RankBuilder(program::SharedInfo &shared, uint32_t rank);

  /// The stream of a kind and target, made at its first use.
  uint16_t getStream(program::StreamKind kind, uint32_t target = 0);
  uint32_t addEvent() { return rank.numEvents++; }
  uint32_t addSlot(program::SlotKind kind);

  void record(uint16_t stream, uint32_t event);
  void wait(uint16_t stream, uint32_t event);
  /// A launch on compute stream 0, with its roles by kind; flags from the pipeline.
  void launch(program::Function function, uint32_t stage, uint32_t microbatch,
              const std::map<program::SlotKind, uint32_t> &slots, bool accumulate = false);
  void pair(uint32_t count);
  void send(uint32_t channel, uint32_t slot, uint32_t stage, uint32_t microbatch);
  void recv(uint32_t channel, uint32_t slot, uint32_t stage, uint32_t microbatch);
  void reduce(uint32_t group, uint32_t stage);
  void step(uint32_t stage);

  /// The program with its slot numbers.
  program::RankProgram finish();

private:
  void push(program::CommandOp op, uint16_t stream, uint32_t arg);

  program::SharedInfo &shared;
  program::RankProgram rank;
  std::map<std::pair<program::StreamKind, uint32_t>, uint16_t> streams;
  std::map<program::SlotKind, uint32_t> counts;
};

struct PipelineOptions {
  uint32_t numRanks = 2;
  uint32_t numMicrobatches = 4; ///< of all pipelines together
  bool training = true;
  bool splitBackward = false; ///< input half and weight half instead of full backwards
  bool mirrored = false;      ///< a second pipeline in reverse over the same stages
  bool vShaped = false;       ///< two stages per rank, the way back over the same ranks
};

/// One of each kind that they can be combined to.
inline const std::vector<PipelineOptions> kPipelines = {
    {.numRanks = 1},
    {.numRanks = 4, .numMicrobatches = 8},
    {.numRanks = 3, .numMicrobatches = 6, .splitBackward = true},
    {.numRanks = 4, .numMicrobatches = 8, .mirrored = true},
    {.numRanks = 2, .numMicrobatches = 4, .vShaped = true},
    {.numRanks = 2, .numMicrobatches = 4, .training = false},
};

/// A whole training step over the ranks, correct in every respect.
program::Program buildPipelines(const PipelineOptions &options);

/// A shared section for one pipeline over `numRanks` ranks, with one source line per entry.
program::SharedInfo makeShared(uint32_t numRanks, uint32_t numMicrobatches);

/// Adds a channel, whose digest `sealChannels` fills in.
uint32_t addChannel(program::SharedInfo &shared, uint32_t source, uint32_t destination,
                    program::SlotKind kind);
/// Sets numbers and digests of all channels from the sends of the program.
void sealChannels(program::Program &program);

/// The first command of a kind on a rank, from `from` on; `kNone` where there is none.
uint32_t find(const program::RankProgram &rank, program::CommandOp op, uint32_t from = 0);
/// The command that launches a function for a micro-batch; `kNone` where none does.
uint32_t findLaunch(const program::RankProgram &rank, program::Function function,
                    uint32_t microbatch);
program::Launch &getLaunch(program::RankProgram &rank, program::Function function,
                           uint32_t microbatch);
void erase(program::RankProgram &rank, uint32_t command);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_RUNTIME_TESTPROGRAMS_H
