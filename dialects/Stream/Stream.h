//===- Stream.h - the stream dialect ------------------------------*- C++ -*-===//
//
// Types, attributes and ops of the dialect in which one rank's program is a
// list of commands on streams, as in the program file.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_STREAM_STREAM_H
#define DUALPIPE_DIALECTS_STREAM_STREAM_H

#include "dialects/Common/Model.h"
#include "dialects/Common/Slots.h"
#include "dialects/Common/TransferKind.h"
#include "dialects/Stream/LaunchProperties.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Stream/StreamDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Stream/StreamTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Stream/StreamAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/Stream/StreamOps.h.inc"

namespace dualpipe::stream {

/// Streams of one rank, as in the program file (P3): passes and checks keep
/// clocks that grow with the square of it.
inline constexpr size_t kMaxStreams = 4096;

} // namespace dualpipe::stream

#endif // DUALPIPE_DIALECTS_STREAM_STREAM_H
