//===- StreamAttrs.cpp - text of a stream's entry in the table --------------===//

#include "dialects/Stream/Stream.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace dualpipe::stream;
using namespace mlir;
using program::StreamKind;

/// `send act to 4`, after the first keyword.
static Attribute parseChannelEnd(AsmParser &parser, StreamKind kind) {
  FailureOr<TransferKind> transfer = FieldParser<TransferKind>::parse(parser);
  uint32_t peer = 0;
  StringRef preposition = kind == StreamKind::Send ? "to" : "from";
  if (failed(transfer) || parser.parseKeyword(preposition) || parser.parseInteger(peer))
    return {};
  return StreamAttr::get(parser.getContext(), kind, *transfer, peer);
}

/// `reduce [0, 7]`, after the first keyword.
static Attribute parseReduceGroup(AsmParser &parser) {
  SmallVector<uint32_t> ranks;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(ranks.emplace_back()); }))
    return {};
  return StreamAttr::get(parser.getContext(), StreamKind::Reduce, TransferKind::Activation, 0,
                         ranks);
}

static Attribute parseStream(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return {};
  if (keyword == "compute")
    return StreamAttr::get(parser.getContext(), StreamKind::Compute);
  if (keyword == "send")
    return parseChannelEnd(parser, StreamKind::Send);
  if (keyword == "recv")
    return parseChannelEnd(parser, StreamKind::Recv);
  if (keyword == "reduce")
    return parseReduceGroup(parser);
  parser.emitError(loc, "expected 'compute', 'send', 'recv' or 'reduce', got '") << keyword << "'";
  return {};
}

Attribute StreamAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  Attribute stream = parseStream(parser);
  if (!stream || parser.parseGreater())
    return {};
  return stream;
}

void StreamAttr::print(AsmPrinter &printer) const {
  switch (getKind()) {
  case StreamKind::Compute:
    printer << "<compute>";
    return;
  case StreamKind::Send:
    printer << "<send " << stringifyTransferKind(getTransfer()) << " to " << getPeer() << ">";
    return;
  case StreamKind::Recv:
    printer << "<recv " << stringifyTransferKind(getTransfer()) << " from " << getPeer() << ">";
    return;
  case StreamKind::Reduce:
    printer << "<reduce [";
    llvm::interleaveComma(getRanks(), printer);
    printer << "]>";
    return;
  }
}
