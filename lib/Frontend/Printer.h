//===- Printer.h - syntax trees as text ------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_PRINTER_H
#define DUALPIPE_LIB_FRONTEND_PRINTER_H

#include "AST.h"

namespace llvm {
class raw_ostream;
}

namespace dualpipe::frontend {

/// Prints one node a line, indented by its depth, with `line:column`.
void printTree(const FileDecl &file, llvm::raw_ostream &os);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_PRINTER_H
