//===- Program.h - between the stream dialect and programs --------*- C++ -*-===//
//
// A `stream.program` as the plain data that the program file holds, and back.
// Ranks are exported one by one, in parallel; what they share (channels, reduce
// groups, phases, locations) is numbered beforehand in `SharedTables`.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TARGET_PROGRAM_H
#define DUALPIPE_TARGET_PROGRAM_H

#include "dialects/Stream/Stream.h"
#include "dualpipe/Program/Program.h"
#include "dualpipe/Program/Verify.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <vector>

namespace dualpipe {

/// The shared section of a program with an index over its tables. Read only
/// while ranks are exported.
class SharedTables {
public:
  /// Takes tables that are complete: every channel, group, phase and location
  /// that a rank may name.
  SharedTables(program::SharedInfo info, mlir::MLIRContext *context);

  /// Collects the tables from the programs of a module. What programs do not
  /// say (names, parameters, the placement of stages whose ranks are not in the
  /// module) is made up; `isPartial` tells whether a placement was.
  static mlir::FailureOr<SharedTables> scan(mlir::ModuleOp module);

  const program::SharedInfo &getInfo() const { return info; }
  program::SharedInfo takeInfo() && { return std::move(info); }
  /// Not every rank that the programs name is in the module.
  bool isPartial() const { return partial; }

  /// Sets the number of transfers and the digest of every channel from the sends
  /// of `ranks`, or from the receives where the sender is not among them.
  void sumChannels(llvm::ArrayRef<program::RankProgram> ranks);

  std::optional<uint32_t> findChannel(uint32_t source, uint32_t destination,
                                      TransferKind kind) const;
  std::optional<uint32_t> findReduceGroup(llvm::ArrayRef<uint32_t> ranks) const;
  std::optional<uint32_t> findPhase(llvm::StringRef name) const;
  /// The number of a location, or of the place in a file inside it. Unknown
  /// locations are number 0, the schedule itself.
  std::optional<uint32_t> findLocation(mlir::Location loc) const;

private:
  void indexTables(mlir::MLIRContext *context);

  program::SharedInfo info;
  bool partial = false;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, uint32_t> channels;
  std::vector<std::pair<std::vector<uint32_t>, uint32_t>> groups; ///< sorted by ranks
  llvm::StringMap<uint32_t> phases;
  llvm::DenseMap<mlir::Attribute, uint32_t> locations;
};

/// The program of one rank. `ops`, where given, receives the op of every command.
/// May run on several ranks at once.
mlir::FailureOr<program::RankProgram> exportRank(stream::ProgramOp op, const SharedTables &tables,
                                                 std::vector<mlir::Operation *> *ops = nullptr);

/// The programs of several ranks, in parallel. Every error is reported, whichever
/// rank comes first.
mlir::LogicalResult exportRanks(llvm::ArrayRef<stream::ProgramOp> ops, const SharedTables &tables,
                                std::vector<program::RankProgram> &programs,
                                std::vector<std::vector<mlir::Operation *>> *commands = nullptr);

/// All programs of a module, in ascending order of rank, with scanned tables.
/// Fails where the module has not all ranks: their placement would be made up.
mlir::FailureOr<program::Program> exportModule(mlir::ModuleOp module);

/// The op of one rank's program, at the builder's place. The program must have
/// been verified (P3), as it is after reading a file.
stream::ProgramOp importRank(const program::RankProgram &rank, const program::SharedInfo &shared,
                             mlir::OpBuilder &builder);

/// A module with all ranks of a program.
mlir::OwningOpRef<mlir::ModuleOp> importProgram(const program::Program &program,
                                                mlir::MLIRContext *context);

/// Reports a broken invariant at the command that it concerns, with rank, command
/// and what the command does, and a note at each of the other commands. `locate`
/// gives the place of a command.
mlir::LogicalResult reportViolation(const program::Violation &violation,
                                    const program::SharedInfo &shared,
                                    llvm::ArrayRef<const program::RankProgram *> ranks,
                                    llvm::function_ref<mlir::Location(program::CommandRef)> locate);

#define GEN_PASS_DECL
#include "lib/Target/Program/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Target/Program/Passes.h.inc"

} // namespace dualpipe

#endif // DUALPIPE_TARGET_PROGRAM_H
