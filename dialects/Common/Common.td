//===- Common.td - properties and enums of both dialects --------*- tablegen -*-===//
//
// Native properties: an op instance holds plain numbers, so creating a million
// ops uniques no attribute.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_COMMON
#define DUALPIPE_DIALECTS_COMMON

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/Properties.td"

def TransferKind : I32Enum<"TransferKind", "what a transfer carries", [
  I32EnumCase<"Activation", 0, "act">,
  I32EnumCase<"Gradient", 1, "grad">
]> {
  let cppNamespace = "::dualpipe";
}

/// A stage, micro-batch, rank or stream number.
def NumberProp : IntProp<"uint32_t", "number"> {
  let convertToAttribute = [{
    return ::mlir::IntegerAttr::get(::mlir::IntegerType::get($_ctxt, 32), $_storage);
  }];
  let convertFromAttribute = [{
    auto number = ::llvm::dyn_cast_if_present<::mlir::IntegerAttr>($_attr);
    if (!number || !number.getType().isSignlessInteger(32))
      return $_diag() << "expected a 32-bit integer attribute";
    $_storage = static_cast<uint32_t>(number.getValue().getZExtValue());
    return ::mlir::success();
  }];
}
/// The program file holds as many stages; passes pack stages into keys.
def StageProp : ConfinedProp<NumberProp, CPred<"$_self < (1u << 24)">, "stage below 2^24">;
def OptionalNumberProp : DefaultValuedProp<NumberProp, "0">;

/// A flag of an op. Printed as a keyword by the ops' custom directives.
def FlagProp : DefaultValuedProp<UnitProp, "false">;

/// The slots that hold the results of an op, one per result, or none yet.
def SlotListProp : Property<"::dualpipe::SlotList", "list of slots", "::llvm::ArrayRef<uint32_t>"> {
  let defaultValue = "::llvm::ArrayRef<uint32_t>{}";
  let storageTypeValueOverride = "::dualpipe::SlotList{}";
  let convertFromStorage = "::llvm::ArrayRef<uint32_t>{$_storage}";
  let assignToStorage = "$_storage.assign($_value.begin(), $_value.end())";
  let convertToAttribute = "return ::dualpipe::slotListToAttribute($_ctxt, $_storage);";
  let convertFromAttribute =
      "return ::dualpipe::slotListFromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::llvm::hash_combine_range($_storage.begin(), $_storage.end())";
  let writeToMlirBytecode = "::dualpipe::writeSlotList($_writer, $_storage);";
  let readFromMlirBytecode = "return ::dualpipe::readSlotList($_reader, $_storage);";
}

/// The slot classes of a rank: kind, size group, count and spares of each.
def SlotClassListProp : Property<"::dualpipe::SlotClassList", "list of slot classes",
                                 "const ::dualpipe::SlotClassList &"> {
  let defaultValue = "::dualpipe::SlotClassList{}";
  let storageTypeValueOverride = "::dualpipe::SlotClassList{}";
  let convertToAttribute = "return ::dualpipe::slotClassesToAttribute($_ctxt, $_storage);";
  let convertFromAttribute =
      "return ::dualpipe::slotClassesFromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::dualpipe::hashSlotClasses($_storage)";
  let writeToMlirBytecode = "::dualpipe::writeSlotClasses($_writer, $_storage);";
  let readFromMlirBytecode = "return ::dualpipe::readSlotClasses($_reader, $_storage);";
}

/// What the program of a rank asks of the stages of a model.
def ModelProp : Property<"::dualpipe::program::Contract", "model contract",
                         "const ::dualpipe::program::Contract &"> {
  let defaultValue = "::dualpipe::program::Contract{}";
  let storageTypeValueOverride = "::dualpipe::program::Contract{}";
  let convertToAttribute = "return ::dualpipe::modelToAttribute($_ctxt, $_storage);";
  let convertFromAttribute = "return ::dualpipe::modelFromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::dualpipe::hashModel($_storage)";
  let writeToMlirBytecode = "::dualpipe::writeModel($_writer, $_storage);";
  let readFromMlirBytecode = "return ::dualpipe::readModel($_reader, $_storage);";
}

#endif // DUALPIPE_DIALECTS_COMMON
