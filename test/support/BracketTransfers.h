//===- BracketTransfers.h - programs with transfer groups --------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_BRACKETTRANSFERS_H
#define DUALPIPE_TEST_SUPPORT_BRACKETTRANSFERS_H

#include "dualpipe/Program/Program.h"

#include <vector>

namespace dualpipe::test {

/// Every send and every receive in a group of its own: no schedule of the library has groups.
inline void bracketTransfers(program::Program &program) {
  using program::CommandOp;
  for (program::RankProgram &rank : program.ranks) {
    std::vector<program::Command> commands;
    for (const program::Command &command : rank.commands) {
      if (command.op == CommandOp::Send || command.op == CommandOp::Recv)
        commands.push_back({CommandOp::Group, command.stream, 1, command.loc});
      commands.push_back(command);
    }
    rank.commands = std::move(commands);
    rank.phases.clear(); // they count commands
  }
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_BRACKETTRANSFERS_H
