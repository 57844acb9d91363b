//===- StreamBuilder.h - commands with the events they need -------*- C++ -*-===//
//
// Emits the commands of one rank in order. For every command the caller names
// what it touches; the builder remembers who touched it last, and puts waits
// before the command and records after what it waits for.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_CONVERSION_STREAMBUILDER_H
#define DUALPIPE_LIB_CONVERSION_STREAMBUILDER_H

#include "dialects/Stream/Stream.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace dualpipe {

class StreamBuilder {
public:
  static constexpr uint32_t kComputeStream = 0;

  /// Emits at the end of the program's body.
  StreamBuilder(stream::ProgramOp program, uint32_t numSlots);

  /// The stream at one end of a channel; made at first use.
  uint32_t getChannelStream(program::StreamKind end, TransferKind kind, uint32_t peer);
  /// The stream of the sums over a group of ranks; made at first use.
  uint32_t getReduceStream(mlir::DenseI32ArrayAttr ranks);
  llvm::ArrayRef<mlir::Attribute> getStreams() const { return streams; }

  /// Names the gradients of a stage as something to touch.
  uint32_t getGradients(uint32_t stage);

  /// What the next command reads and writes: slots and gradients.
  void read(uint32_t resource) { reads.push_back(resource); }
  void write(uint32_t resource) { writes.push_back(resource); }

  /// Puts the waits of the next command, which stands on `stream`. The caller
  /// then emits the command with `ops()` and closes it with `finish`.
  void begin(mlir::Location loc, uint32_t stream);
  mlir::OpBuilder &ops() { return builder; }
  void finish(mlir::Operation *command);

private:
  struct Command {
    mlir::Operation *op;
    uint32_t stream;
    mlir::Value event; ///< null until something waits for the command
  };
  /// The commands that touched a resource last.
  struct LastUses {
    uint32_t writer = program::kNone;
    llvm::SmallVector<uint32_t, 2> readers; ///< since that write, the last of each stream
  };

  void dependOn(uint32_t command);
  void keepLatestOfStreams();
  void dependOnUses(const LastUses &uses);
  mlir::Value getEvent(uint32_t command);
  void addReader(LastUses &uses, uint32_t command);

  mlir::OpBuilder builder;
  mlir::Block *body;
  std::vector<mlir::Attribute> streams;
  llvm::DenseMap<uint64_t, uint32_t> channelStreams;
  llvm::DenseMap<mlir::Attribute, uint32_t> reduceStreams;
  llvm::DenseMap<uint32_t, uint32_t> gradients; ///< by stage
  std::vector<LastUses> resources;
  std::vector<Command> commands;
  uint32_t stream = kComputeStream; ///< of the command that has begun
  llvm::SmallVector<uint32_t, 8> reads, writes, dependences;
};

} // namespace dualpipe

#endif // DUALPIPE_LIB_CONVERSION_STREAMBUILDER_H
