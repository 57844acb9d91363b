//===- Complain.h - errors that are at no place of an input -----------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_COMPLAIN_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_COMPLAIN_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

namespace dualpipe::opt {

/// Prints an error of the tool: about an option, a file as a whole, the output.
/// \returns failure.
inline llvm::LogicalResult complain(const llvm::Twine &message) {
  llvm::errs() << "dualpipe-opt: error: " << message << "\n";
  return llvm::failure();
}

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_COMPLAIN_H
