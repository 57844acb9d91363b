//===- Format.h - lays out the text of a `.pipe` file ----------------------===//
//
// The formatter works on tokens and comments, not on syntax trees: it lays out
// files with errors and words that the parser does not know yet. It moves blanks
// and line ends only. Its rules stand in docs/tools.md.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_FRONTEND_FORMAT_H
#define DUALPIPE_FRONTEND_FORMAT_H

#include "dualpipe/Frontend/Frontend.h"

namespace dualpipe::frontend {

/// Lays out `text`. The result has the same tokens and comments in the same order, means the
/// same, and is its own layout. Fails where a token cannot be read, where blocks are nested
/// deeper than `limits.maxNesting`, and where the text is longer than `limits.maxFileBytes`; the
/// findings have places in file 0.
llvm::FailureOr<std::string> formatText(llvm::StringRef text, DiagnosticSink &sink,
                                        const Limits &limits = {});

} // namespace dualpipe::frontend

#endif // DUALPIPE_FRONTEND_FORMAT_H
