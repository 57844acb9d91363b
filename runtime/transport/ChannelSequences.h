//===- ChannelSequences.h - whether both ends of a channel agree ---------------===//

#ifndef DUALPIPE_RUNTIME_TRANSPORT_CHANNELSEQUENCES_H
#define DUALPIPE_RUNTIME_TRANSPORT_CHANNELSEQUENCES_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dualpipe::runtime {

/// Compares the transfers of ranks of one process, as they are connected: two ends with different
/// sequences would hand over the wrong tensors without any error.
class ChannelSequences {
public:
  /// `shared` outlives the object.
  explicit ChannelSequences(const program::SharedInfo &shared)
      : shared(shared), known(shared.channels.size()) {}

  /// Adds the sequences of a rank's channels as its own commands have them. Fails where one is not
  /// that of the other end.
  Status add(const program::RankProgram &rank);

private:
  struct Sequence {
    uint64_t numTransfers = 0;
    uint64_t digest = program::kDigestSeed;

    bool operator==(const Sequence &other) const {
      return numTransfers == other.numTransfers && digest == other.digest;
    }
  };
  Status agree(uint32_t channel, const Sequence &sequence);

  const program::SharedInfo &shared;
  std::vector<std::optional<Sequence>> known; ///< by channel, of the end that came first
};

/// A rank's place among the members of a reduce group; kNone where it is none.
uint32_t findMember(const program::ReduceGroup &group, uint32_t rank);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_TRANSPORT_CHANNELSEQUENCES_H
