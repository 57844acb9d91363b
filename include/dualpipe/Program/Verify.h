//===- Verify.h - the checks on compiled programs ---------------------------===//
//
// One checker for programs, whoever made them: the compiler runs it on what it
// is about to write, the loader on what it has read. It knows nothing of the
// passes that are meant to establish these invariants. Numbers are those of
// docs/invariants.md.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_PROGRAM_VERIFY_H
#define DUALPIPE_PROGRAM_VERIFY_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace dualpipe::program {

/// A command of a rank's program. `command` is kNone where the finding concerns
/// the rank or the shared section as a whole.
struct CommandRef {
  uint32_t rank = kNone;
  uint32_t command = kNone;
};

/// A broken invariant.
struct Violation {
  struct Note {
    CommandRef where;
    std::string message;
  };
  const char *id; ///< "P1", "D3", ...
  CommandRef where;
  std::string message; ///< lower case, no full stop, without the id and the place
  std::vector<Note> notes;
};
using Verdict = std::optional<Violation>;

/// P3: slots, events, streams, channels, stages and functions are in range; a
/// group uses one stream; a command stands on a stream of its kind; every table
/// that a command indexes holds it. Checked first: the others rely on it.
Verdict verifyShared(const SharedInfo &shared);
Verdict verifyRanges(const SharedInfo &shared, const RankProgram &rank);
/// P1: every event is recorded at most once, and every wait has an earlier
/// record of its event in issue order.
Verdict verifyEvents(const SharedInfo &shared, const RankProgram &rank);
/// P2: two accesses to a slot, one of them a write, are ordered by streams and
/// events of the rank; a slot is never read before it is written. The gradients
/// of a stage's copy are held to the same: backwards write them, a reduction
/// reads and writes them, a step reads them. So are its weights, which stage
/// functions read and a step writes.
Verdict verifySlots(const SharedInfo &shared, const RankProgram &rank);
/// D1 and D2 for one rank alone: what passes through the rank's ends of its
/// channels agrees in number and digest with the shared section.
Verdict verifyChannelEnds(const SharedInfo &shared, const RankProgram &rank);
/// D1, D2 where both ends are at hand: every send meets one receive, in order;
/// reductions have the same members and order on all of them.
Verdict verifyMatching(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks);
/// D3, the one-queue rule, over all ranks: all issue lists, with matched ends as
/// one event, have no cycle as if each rank had one queue. Linear in the
/// commands. Needs what verifyMatching establishes. The notes are a shortest
/// cycle, one per command.
Verdict verifyProgress(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks);

/// The weaker form of D3, for transfers placed by hand: the program finishes under rendezvous
/// where each rank has `numQueues` hardware queues and stream s of it uses number s modulo
/// `numQueues`; 0 gives every stream a queue of its own. Linear in the commands. Needs what
/// verifyEvents and verifyMatching establish. The notes are a shortest cycle, one per command.
Verdict verifyQueues(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
                     uint32_t numQueues);
/// D5, by symbolic execution in issue order: what a command reads from a slot is the value that it
/// names, and every forward that the pipelines place on the rank runs exactly once. A receive is
/// taken to bring what it names, which D1, D2 and D5 of the sender establish. Linear in the
/// commands. Needs what verifySlots establishes.
Verdict verifyValues(const SharedInfo &shared, const RankProgram &rank);
/// D4, the same way: every stage's copy on the rank gets the gradient of each of its micro-batches
/// exactly once, the first one overwriting; then it takes part in one reduction over all ranks that
/// hold a copy, where there are several; then it takes one step. Forward only: nothing to check.
Verdict verifyGradients(const SharedInfo &shared, const RankProgram &rank);
/// P4: the slots of every class are as many as hold values at once, and the stated spares.
Verdict verifyMemory(const SharedInfo &shared, const RankProgram &rank);
/// P5: no group has more transfers than `limit`.
inline constexpr uint32_t kDefaultGroupLimit = 256; ///< more in one group have hung NCCL
Verdict verifyGroups(const SharedInfo &shared, const RankProgram &rank,
                     uint32_t limit = kDefaultGroupLimit);

/// The checks on one rank: P3, P1, P2, then the channel ends.
Verdict verifyRank(const SharedInfo &shared, const RankProgram &rank);
/// The checks between ranks: D1, D2, D3. All ranks of the program must be given, in order.
Verdict verifyAcrossRanks(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks);
/// What a rank computes, given that it runs as the checks above say: D5, then D4. The pipelines of
/// the shared section must be those of the schedule, not made up.
Verdict verifyResults(const SharedInfo &shared, const RankProgram &rank);
/// What a program must satisfy to be run: everything but P4 and P5 that applies to the ranks at
/// hand.
Verdict verifyProgram(const Program &program);

/// How to check a program as a whole.
struct WholeOptions {
  /// Where set, D3 is checked by verifyQueues with this number instead of by the one-queue rule.
  std::optional<uint32_t> numQueues;
  /// For P5.
  uint32_t groupLimit = kDefaultGroupLimit;
};
/// Every invariant, whatever made the program. Fails where not all ranks are at hand.
Verdict verifyWholeProgram(const Program &program, const WholeOptions &options = {});

/// "file.pipe:12:7" of an entry of `SharedInfo::locations`.
std::string describeLocation(const SharedInfo &shared, uint32_t loc);
/// "rank 3, command 17: recv of the activation for stage 2, micro-batch 4 (file.pipe:12:7)"
std::string describeCommand(const SharedInfo &shared, const RankProgram &rank, uint32_t command);
/// A verdict as a status whose message has id, place, finding and notes.
Status toStatus(const Program &program, const Verdict &verdict);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_VERIFY_H
