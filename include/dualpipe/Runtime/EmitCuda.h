//===- EmitCuda.h - a program as CUDA C++ -----------------------------------===//
//
// A file for each rank in which its step stands as straight calls (emitted.h), one
// that lists the ranks, and one for CMake. Each is made by itself, so that no more
// than one rank's text is in memory. The same program gives the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_EMITCUDA_H
#define DUALPIPE_RUNTIME_EMITCUDA_H

#include "dualpipe/Program/Program.h"

#include <string>

namespace dualpipe::runtime {

/// What of a program's files is named after its schedule: "dualpipe", letters, digits and '_' only.
std::string getEmittedName(const program::SharedInfo &shared);
/// "rank3.cu".
std::string getRankFileName(uint32_t rank);

/// The file of a rank. The program must have passed verifyRanges.
std::string emitRank(const program::SharedInfo &shared, const program::RankProgram &rank);
/// step.cpp: what the shared object exports.
std::string emitStep(const program::Program &program);
/// CMakeLists.txt: builds the shared object lib<name>_step.so.
std::string emitBuildFile(const program::Program &program);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EMITCUDA_H
