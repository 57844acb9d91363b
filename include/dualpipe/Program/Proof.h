//===- Proof.h - what has been shown of a program, in words -----------------===//

#ifndef DUALPIPE_PROGRAM_PROOF_H
#define DUALPIPE_PROGRAM_PROOF_H

#include "dualpipe/Program/Verify.h"

#include <string>

namespace dualpipe::program {

/// A line for each invariant, with how many things it was checked on. Needs a program that has
/// passed verifyWholeProgram with the same options. The same program gives the same text.
std::string describeProof(const Program &program, const WholeOptions &options = {});

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_PROOF_H
