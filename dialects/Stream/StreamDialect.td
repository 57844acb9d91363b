//===- StreamDialect.td - dialect, types and attributes ---------*- tablegen -*-===//
//
// The `stream` dialect mirrors the program file: one ordered list of commands
// per rank, each on a stream. README.md lists its phases and invariants.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_STREAM_DIALECT
#define DUALPIPE_DIALECTS_STREAM_DIALECT

include "dialects/Common/Common.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Stream_Dialect : Dialect {
  let name = "stream";
  let cppNamespace = "::dualpipe::stream";
  let summary = "the commands of one rank on its streams";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

def Stream_EventType : TypeDef<Stream_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "a recorded point of a stream";
}

def Stream_StreamAttr : AttrDef<Stream_Dialect, "Stream"> {
  let mnemonic = "stream";
  let summary = "what a stream of a rank is for";
  let description = [{
    `#stream.stream<compute>`, `<send act to 4>`, `<recv grad from 4>`: the end of
    a channel; `<reduce [0, 7]>`: the sums over a group of ranks.
  }];
  let parameters = (ins "::dualpipe::program::StreamKind":$kind,
                        "::dualpipe::TransferKind":$transfer, "uint32_t":$peer,
                        ArrayRefParameter<"uint32_t">:$ranks);
  let builders = [
    AttrBuilder<(ins "::dualpipe::program::StreamKind":$kind,
                     CArg<"::dualpipe::TransferKind",
                          "::dualpipe::TransferKind::Activation">:$transfer,
                     CArg<"uint32_t", "0">:$peer,
                     CArg<"::llvm::ArrayRef<uint32_t>", "{}">:$ranks), [{
      return $_get($_ctxt, kind, transfer, peer, ranks);
    }]>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
}

def Stream_StreamTableAttr : TypedArrayAttrBase<Stream_StreamAttr, "the streams of a rank">;

/// The stage function that a launch calls.
def Stream_FunctionProp : Property<"::dualpipe::program::Function", "stage function"> {
  let convertToAttribute = "return ::dualpipe::stream::functionToAttribute($_ctxt, $_storage);";
  let convertFromAttribute =
      "return ::dualpipe::stream::functionFromAttribute($_storage, $_attr, $_diag);";
  let writeToMlirBytecode = "$_writer.writeVarInt(static_cast<uint64_t>($_storage));";
  let readFromMlirBytecode = "return ::dualpipe::stream::readFunction($_reader, $_storage);";
}

/// The slot that a launch uses in each role.
def Stream_RoleSlotsProp : Property<"::dualpipe::stream::RoleSlots", "slots by role",
                                    "const ::dualpipe::stream::RoleSlots &"> {
  let convertToAttribute = "return ::dualpipe::stream::roleSlotsToAttribute($_ctxt, $_storage);";
  let convertFromAttribute =
      "return ::dualpipe::stream::roleSlotsFromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::llvm::hash_combine_range($_storage.begin(), $_storage.end())";
  let writeToMlirBytecode = "::dualpipe::stream::writeRoleSlots($_writer, $_storage);";
  let readFromMlirBytecode = "return ::dualpipe::stream::readRoleSlots($_reader, $_storage);";
}

#endif // DUALPIPE_DIALECTS_STREAM_DIALECT
