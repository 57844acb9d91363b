//===- PipeDialect.cpp - registration of the pipe dialect -------------------===//

#include "dialects/Pipe/Pipe.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace dualpipe::pipe;

#include "dialects/Pipe/PipeDialect.cpp.inc"
#include "dialects/Pipe/PipeInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Pipe/PipeTypes.cpp.inc"

void PipeDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Pipe/PipeTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Pipe/PipeOps.cpp.inc"
      >();
}
