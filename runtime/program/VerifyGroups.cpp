//===- VerifyGroups.cpp - P5: no group has more transfers than fit ----------===//

#include "Facts.h"

#include <fmt/format.h>

namespace dualpipe::program {

Verdict verifyGroups(const SharedInfo &, const RankProgram &rank, uint32_t limit) {
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    if (command.op == CommandOp::Group && command.arg > limit)
      return violation("P5", rank.rank, i,
                       fmt::format("{} transfers in one group, expected at most {}: more may hang "
                                   "a device; compile with --group-limit={}, which splits them",
                                   command.arg, limit, limit));
  }
  return {};
}

} // namespace dualpipe::program
