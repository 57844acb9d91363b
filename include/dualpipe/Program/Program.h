//===- Program.h - compiled programs as plain data --------------------------===//
//
// What the compiler hands to the runtime, in memory. `Writer.h` puts it into a
// `.dpx` file, `Reader.h` reads it back, `Verify.h` checks it. No LLVM, no MLIR.
//
// A rank's program is one ordered list of commands, each on a stream; that list
// is the order in which the host issues them. A stream runs its commands in
// order; streams run side by side; `Record` and `Wait` on an event are the only
// order between streams of a rank, matched transfers and reductions the only
// order between ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_PROGRAM_PROGRAM_H
#define DUALPIPE_PROGRAM_PROGRAM_H

#include "dualpipe/Program/Contract.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::program {

inline constexpr uint32_t kNone = ~0u;

enum LaunchFlags : uint8_t {
  kAccumulate = 1, ///< add to the gradients of the copy; without it, overwrite them
  kFirstStage = 2, ///< first stage of its pipeline: no gradient leaves
  kLastStage = 4,  ///< last stage of its pipeline: labels in, loss out
};

enum class CommandOp : uint8_t {
  Launch, ///< arg: index into `launches`
  Pair,   ///< arg: how many launches follow that belong together
  Send,   ///< arg: index into `transfers`
  Recv,   ///< arg: index into `transfers`
  Group,  ///< arg: how many transfers follow that are issued as one group; one stream
  Record, ///< arg: event
  Wait,   ///< arg: event
  Reduce, ///< arg: index into `reductions`
  Step,   ///< arg: global stage whose copy on this rank takes its optimizer step
};
inline constexpr unsigned kNumCommandOps = 9;
const char *getName(CommandOp op);

/// One entry of a rank's list.
struct Command {
  CommandOp op;
  uint16_t stream; ///< index into `RankProgram::streams`
  uint32_t arg;
  uint32_t loc; ///< index into `SharedInfo::locations`
};

/// One call of a stage function, and the slots it works on.
struct Launch {
  Function function;
  uint8_t flags; ///< LaunchFlags
  uint16_t component;
  uint32_t stage;
  uint32_t microbatch;
  /// Slot by SlotKind role, or kNone. The slot's own class may differ from the
  /// role: a value handed over inside a rank is an Output slot read as Input.
  std::array<uint32_t, kNumSlotKinds> slots;
};

/// One end of a transfer.
struct Transfer {
  uint32_t channel; ///< index into `SharedInfo::channels`
  uint32_t slot;
  uint32_t stage; ///< the consumer's stage
  uint32_t microbatch;
};

/// One member's part in the sum of the gradients of a stage over its copies.
struct Reduction {
  uint32_t group; ///< index into `SharedInfo::reduceGroups`
  uint32_t stage;
};

enum class StreamKind : uint8_t { Compute, Send, Recv, Reduce };
const char *getName(StreamKind kind);

/// A queue of commands of one rank, which run one after the other.
struct Stream {
  StreamKind kind;
  uint32_t target; ///< channel (Send, Recv), reduce group (Reduce), 0 (Compute)
};

/// Slots of one class stand next to each other; slot numbers run through the
/// classes in their order: class 0 has the first `count` numbers.
struct SlotClass {
  SlotKind kind;
  uint32_t sizeGroup;
  uint32_t count;  ///< slots allocated = peak + spares
  uint32_t spares; ///< slots beyond the peak of the liveness
};

/// Where a phase of the schedule begins in a rank's list; for people only.
struct PhaseMark {
  uint32_t name;    ///< index into `SharedInfo::phaseNames`
  uint32_t command; ///< first command of the phase
};

/// What one rank runs in a step.
struct RankProgram {
  uint32_t rank = 0;
  uint32_t numEvents = 0;
  std::vector<Stream> streams;
  std::vector<SlotClass> slotClasses;
  std::vector<Command> commands;
  std::vector<Launch> launches;
  std::vector<Transfer> transfers;
  std::vector<Reduction> reductions;
  std::vector<PhaseMark> phases;

  uint32_t getNumSlots() const;
};

/// A first-in, first-out queue of transfers from one rank to another.
struct Channel {
  uint32_t source;
  uint32_t destination;
  SlotKind kind; ///< Output (an activation) or GradInput (a gradient)
  uint64_t numTransfers;
  /// Digest of the sequence of (stage, micro-batch) that passes; both ends must agree.
  uint64_t digest;
};

/// Ranks that sum the gradients of stages they all hold a copy of.
struct ReduceGroup {
  std::vector<uint32_t> ranks; ///< ascending
};

/// A chain of stages, the micro-batches that flow through it, and where its stages are.
struct PipelineInfo {
  std::string name;
  uint32_t firstStage;
  uint32_t numStages;
  uint32_t firstMicrobatch;
  uint32_t numMicrobatches;
  std::vector<uint32_t> placement; ///< rank by stage of the pipeline
};

/// A place in a `.pipe` file; line 0 where none is known.
struct Location {
  uint32_t file; ///< index into `SharedInfo::files`
  uint32_t line;
  uint32_t column;
};

/// What all ranks of a program share.
struct SharedInfo {
  std::string schedule;
  std::string producer; ///< tool and version
  uint32_t numRanks = 0;
  uint32_t numMicrobatches = 0;
  uint32_t numStages = 0;
  bool training = true;
  std::vector<std::pair<std::string, int64_t>> params;
  std::vector<std::pair<std::string, std::string>> planCosts; ///< as given or defaulted
  std::vector<PipelineInfo> pipelines;
  std::vector<Channel> channels;
  std::vector<ReduceGroup> reduceGroups;
  Contract contract;
  std::vector<std::string> phaseNames;
  std::vector<std::string> files;
  std::vector<Location> locations;
};

/// Digest of a channel's sequence: fold every transfer in order, from kDigestSeed.
inline constexpr uint64_t kDigestSeed = 0xcbf29ce484222325ull;
uint64_t extendDigest(uint64_t digest, uint32_t stage, uint32_t microbatch);

/// A whole program. `ranks` may hold a subset, in ascending order of rank.
struct Program {
  SharedInfo shared;
  std::vector<RankProgram> ranks;
};

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_PROGRAM_H
