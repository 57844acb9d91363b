//===- ModuleImpl.h - what a module owns -----------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_MODULEIMPL_H
#define DUALPIPE_LIB_FRONTEND_MODULEIMPL_H

#include "AST.h"
#include "dualpipe/Frontend/Frontend.h"

#include "llvm/Support/Allocator.h"

#include <deque>
#include <string>
#include <vector>

namespace dualpipe::frontend {

/// The syntax trees of a file and its imports, with their memory.
class ModuleImpl {
public:
  llvm::BumpPtrAllocator arena;
  /// Names of the files, in the order in which they were loaded.
  std::vector<std::string> files;
  /// The tree of each file.
  std::deque<FileDecl> trees;
  /// Where each statement or rule stands that makes ops or transfers, by its number.
  std::vector<SourceLoc> places;
  /// Names of phases by their number, in the order of the text.
  std::vector<std::string> phaseNames;
  bool valid = false;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_MODULEIMPL_H
