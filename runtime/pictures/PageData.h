//===- PageData.h - a program as a page's script reads it -------------------===//

#ifndef DUALPIPE_RUNTIME_PICTURES_PAGEDATA_H
#define DUALPIPE_RUNTIME_PICTURES_PAGEDATA_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Simulation.h"

#include <string>

namespace dualpipe::runtime {

/// What the page knows besides the commands: names, sizes, channels, colours, costs. JSON.
std::string printPageFacts(const program::Program &program, const SimulationCosts &costs);

/// The commands of all ranks, the places of the slots' values and of the phases: small numbers of
/// seven bits a byte, mostly differences to the one before of their kind, compressed where the
/// runtime was built with zlib, in base64. page/program.js reads it.
std::string printPageProgram(const program::Program &program);

/// Whether `printPageProgram` compresses (RFC 1950, which browsers call "deflate").
bool isPageProgramCompressed();

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_PAGEDATA_H
