//===- StreamDialect.cpp - registration of the stream dialect ---------------===//

#include "dialects/Stream/Stream.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace dualpipe::stream;

#include "dialects/Stream/StreamDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Stream/StreamTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Stream/StreamAttrs.cpp.inc"

void StreamDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Stream/StreamTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Stream/StreamAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Stream/StreamOps.cpp.inc"
      >();
}
