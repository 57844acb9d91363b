//===- FormatPipe.h - the formatter of `.pipe` files ------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_FORMATPIPE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_FORMATPIPE_H

#include "Options.h"

#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Lays out the input and writes it to the output, which may be the same file. Prints why it
/// cannot; nothing is written then.
llvm::LogicalResult formatPipe(const DriverOptions &options);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_FORMATPIPE_H
