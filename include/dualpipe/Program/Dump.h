//===- Dump.h - programs as text for people ---------------------------------===//

#ifndef DUALPIPE_PROGRAM_DUMP_H
#define DUALPIPE_PROGRAM_DUMP_H

#include "dualpipe/Program/Program.h"

#include <string>

namespace dualpipe::program {

/// The whole program: what all ranks share, then per rank its streams, slot
/// classes and commands by phase, in aligned columns. Needs a program that has
/// passed verifyProgram. The same program gives the same text.
std::string dumpProgram(const Program &program);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_DUMP_H
