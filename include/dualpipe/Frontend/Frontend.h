//===- Frontend.h - from `.pipe` text to order tables ----------------------===//
//
// The front end has two halves. `parse` turns a file and what it imports into a
// `Module`: syntax trees in which every name is bound. `instantiate` runs one
// schedule of a module for given numbers of ranks and micro-batches and fills
// the order tables of a `Schedule`. Neither prints: all findings go to a
// `DiagnosticSink`, with places that index `getFiles`.
//
// The language is described in docs/language.md.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_FRONTEND_FRONTEND_H
#define DUALPIPE_FRONTEND_FRONTEND_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llvm {
class raw_ostream;
class SourceMgr;
} // namespace llvm

namespace dualpipe::frontend {

/// Bounds that keep any input from hanging or exhausting the compiler. Each has
/// its own error message.
struct Limits {
  /// Bytes of one source file.
  uint64_t maxFileBytes = uint64_t(16) << 20;
  /// Errors after which a phase stops.
  unsigned maxErrors = 30;
  /// Depth of nested expressions and blocks in the text.
  unsigned maxNesting = 400;
  /// Depth of nested evaluation, over calls of `def`s: levels of expressions and blocks.
  unsigned maxCallDepth = 10000;
  uint32_t maxRanks = uint32_t(1) << 16;
  /// Stages times micro-batches, summed over the pipelines.
  uint64_t maxForwards = uint64_t(1) << 26;
  /// Ops of one fused group; they are compared in pairs.
  uint32_t maxFusedOps = 64;
  /// Steps of evaluation (about one per node of the syntax tree) for the set-up
  /// and for each rank.
  uint64_t maxSteps = uint64_t(1) << 25;
};

/// What to instantiate.
struct Options {
  std::optional<uint32_t> ranks;
  std::optional<uint32_t> microbatches;
  /// Values of `param`s, in the order in which the user gave them.
  std::vector<std::pair<std::string, std::variant<int64_t, bool>>> params;
  /// The schedule's name; may be empty where the file has only one.
  std::string schedule;
  /// Drop backward ops; `training` is false.
  bool forwardOnly = false;
  /// Go before the schedule's own `cost`.
  Costs planCosts;
  Limits limits;
};

class ModuleImpl;

/// A parsed file with everything that it imports.
class Module {
public:
  explicit Module(std::unique_ptr<ModuleImpl> impl);
  ~Module();
  Module(Module &&);
  Module &operator=(Module &&);

  /// False where parsing reported an error; such a module has file names only.
  bool isValid() const;
  /// The source files, the main one first: paths as the user gave them, those
  /// of imports joined to the folder of the importer. They equal the
  /// identifiers of the buffers in the source manager.
  llvm::ArrayRef<std::string> getFiles() const;
  /// The names of the main file's schedules, in order.
  std::vector<std::string> getScheduleNames() const;
  /// Prints the syntax trees of the main file, one node a line with its place.
  void print(llvm::raw_ostream &os) const;

  const ModuleImpl &getImpl() const { return *impl; }

private:
  std::unique_ptr<ModuleImpl> impl;
};

/// Parses the buffer `buffer` of `sources` and loads what it imports into
/// `sources`, through its virtual file system where it has one. Always returns
/// a module, so that the places in diagnostics can be named.
Module parse(llvm::SourceMgr &sources, unsigned buffer, DiagnosticSink &sink,
             const Limits &limits = {});

/// Loads the file `path` into `sources` and parses it.
Module parseFile(llvm::SourceMgr &sources, llvm::StringRef path, DiagnosticSink &sink,
                 const Limits &limits = {});

/// Runs a schedule of a valid module and fills `schedule`. Ranks are run in
/// parallel; the result and the findings do not depend on the number of
/// threads. On failure `schedule` is left as it was.
llvm::LogicalResult instantiate(const Module &module, const Options &options, Schedule &schedule,
                                DiagnosticSink &sink);

} // namespace dualpipe::frontend

#endif // DUALPIPE_FRONTEND_FRONTEND_H
