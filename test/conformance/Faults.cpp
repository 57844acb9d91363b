//===- Faults.cpp - faults that GPUs made of software must catch -----------------===//
//
// A fault is caught where the GPUs report what CUDA would leave undefined, where the
// run fails, or where it computes something else. The first is what counts on a real
// GPU: the table keeps them apart.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "test/support/Mutator.h"
#include "test/support/softrun/SoftRun.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

namespace dualpipe::test {

using namespace program;
using runtime::kTensorAlignment;

namespace {

/// In so many orders, one after the other, until one shows the fault.
constexpr uint64_t kSeeds = 12;

/// How faults of a kind were caught.
struct Caught {
  unsigned reported = 0, failed = 0, differed = 0, missed = 0;

  unsigned getAll() const { return reported + failed + differed + missed; }
};

class Planter {
public:
  explicit Planter(const Subject &subject) : subject(subject) {}

  void plant(const std::string &kind, const std::string &what, const program::Program &broken,
             SoftRunOptions options = {});
  bool finish() const;

private:
  const Subject &subject;
  std::vector<std::string> kinds;
  std::map<std::string, Caught> table;
};

} // namespace

void Planter::plant(const std::string &kind, const std::string &what,
                    const program::Program &broken, SoftRunOptions options) {
  if (!table.count(kind))
    kinds.push_back(kind);
  Caught &caught = table[kind];
  options.training = Subject::getTraining();
  for (uint64_t seed = 0; seed != kSeeds; ++seed) {
    options.gpu.seed = seed;
    const SoftRunResult run = runOnSoftGpus(broken, options);
    if (!run.reports.empty()) {
      ++caught.reported;
      return;
    }
    if (!run.failure.empty()) {
      ++caught.failed;
      return;
    }
    if (!subject.compare(run.result).empty()) {
      ++caught.differed;
      return;
    }
  }
  ++caught.missed;
  fmt::print("missed: {}: {}\n", kind, what);
}

bool Planter::finish() const {
  bool good = true;
  fmt::print("{:<24} {:>6} {:>9} {:>7} {:>9} {:>7}\n", "fault", "times", "reported", "failed",
             "differed", "missed");
  for (const std::string &kind : kinds) {
    const Caught &caught = table.at(kind);
    fmt::print("{:<24} {:>6} {:>9} {:>7} {:>9} {:>7}\n", kind, caught.getAll(), caught.reported,
               caught.failed, caught.differed, caught.missed);
    good &= caught.missed == 0;
  }
  return good;
}

static std::vector<CommandRef> listAll(const Subject &subject, CommandOp op) {
  return Mutator(subject.program, 0).list(op);
}

/// Any wait, one by one. Between GPUs: on one GPU the copy of a transfer orders more than NCCL
/// does.
static void dropWaits(const Subject &subject, Planter &planter) {
  for (const CommandRef ref : listAll(subject, CommandOp::Wait)) {
    Mutator mutator(subject.program, 0);
    const std::string what = mutator.describe(ref);
    mutator.erase(ref);
    planter.plant("a wait is missing", what, mutator.program, {.transport = SoftTransport::Nccl});
  }
}

/// On one GPU most of them show as well.
static void dropRecords(const Subject &subject, Planter &planter) {
  for (const CommandRef ref : listAll(subject, CommandOp::Record)) {
    Mutator mutator(subject.program, 0);
    const std::string what = mutator.describe(ref);
    mutator.erase(ref);
    planter.plant("a record is missing", what, mutator.program, {.transport = SoftTransport::Nccl});
  }
}

/// Two neighbouring sends of a channel become a group, in the other order.
static void swapInGroups(const Subject &subject, Planter &planter) {
  for (uint32_t rank = 0; rank != subject.program.ranks.size(); ++rank) {
    const std::vector<Command> &commands = subject.program.ranks[rank].commands;
    for (uint32_t first = 0; first != commands.size(); ++first) {
      if (commands[first].op != CommandOp::Send)
        continue;
      // The next of the stream goes before it: with the waits between, it would be the same order.
      const auto next =
          std::find_if(commands.begin() + first + 1, commands.end(), [&](const Command &command) {
            return command.op == CommandOp::Send && command.stream == commands[first].stream;
          });
      if (next == commands.end())
        continue;
      program::Program broken = subject.program;
      RankProgram &changed = broken.ranks[rank];
      const auto second = uint32_t(next - commands.begin());
      // Where the second is issued, both are, as a group whose members are swapped.
      const Command one = changed.commands[first], two = changed.commands[second];
      changed.commands.erase(changed.commands.begin() + first);
      const auto at = changed.commands.begin() + (second - 1);
      *at = two;
      changed.commands.insert(at, Command{CommandOp::Group, two.stream, 2, two.loc});
      changed.commands.insert(changed.commands.begin() + (second + 1), one);
      changed.phases.clear();
      planter.plant("group members swapped",
                    describeCommand(subject.program.shared, changed, second), broken,
                    {.transport = SoftTransport::Nccl});
    }
  }
}

/// The rank at the other end of a transfer.
static uint32_t findPeer(const program::Program &program, uint32_t rank, uint32_t command) {
  const RankProgram &own = program.ranks[rank];
  const Channel &channel =
      program.shared.channels[own.transfers[own.commands[command].arg].channel];
  return channel.source == rank ? channel.destination : channel.source;
}

/// A transfer is issued after the next one, which is with the same rank on another channel: the
/// order of two communicators, on one of their ranks only.
static void swapCommunicators(const Subject &subject, Planter &planter) {
  for (uint32_t rank = 0; rank != subject.program.ranks.size(); ++rank) {
    const std::vector<Command> &commands = subject.program.ranks[rank].commands;
    std::optional<uint32_t> last;
    for (uint32_t i = 0; i != commands.size(); ++i) {
      const CommandOp op = commands[i].op;
      if (op != CommandOp::Send && op != CommandOp::Recv)
        continue;
      if (last && commands[*last].stream != commands[i].stream &&
          findPeer(subject.program, rank, *last) == findPeer(subject.program, rank, i)) {
        program::Program broken = subject.program;
        RankProgram &changed = broken.ranks[rank];
        std::swap(changed.commands[*last], changed.commands[i]);
        changed.phases.clear();
        planter.plant("communicators reordered",
                      describeCommand(subject.program.shared, changed, i), broken,
                      {.transport = SoftTransport::Nccl});
      }
      last = i;
    }
  }
}

/// The last slot of each rank is too small by a byte.
static void shrinkSlots(const Subject &subject, Planter &planter) {
  std::set<size_t> sizes;
  for (const RankProgram &rank : subject.program.ranks)
    sizes.insert(rank.getNumSlots() * kTensorAlignment);
  for (const size_t size : sizes) {
    SoftRunOptions options;
    options.missingOf = size;
    // The model's tensors have 8 bytes, slots 64.
    options.missingBytes = kTensorAlignment - sizeof(double) + 1;
    planter.plant("a slot is too small", fmt::format("of {} bytes", size), subject.program,
                  options);
  }
}

bool plantFaults(const Subject &subject) {
  Planter planter(subject);
  dropWaits(subject, planter);
  dropRecords(subject, planter);
  swapInGroups(subject, planter);
  swapCommunicators(subject, planter);
  shrinkSlots(subject, planter);
  return planter.finish();
}

} // namespace dualpipe::test
