//===- WritePicture.h - programs as pictures --------------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_WRITEPICTURE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_WRITEPICTURE_H

#include "Options.h"

#include "dualpipe/Program/Program.h"

#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Whether an output shows a program in time: it then takes `--cost`.
bool isPicture(Emit emit);

/// Simulates `program` and writes what `options.emit` names to `options.output`.
llvm::LogicalResult writePicture(const DriverOptions &options, const program::Program &program);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_WRITEPICTURE_H
