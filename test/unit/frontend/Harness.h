//===- Harness.h - compiles text for the tests of the front end ------------===//

#ifndef DUALPIPE_TEST_UNIT_FRONTEND_HARNESS_H
#define DUALPIPE_TEST_UNIT_FRONTEND_HARNESS_H

#include "dualpipe/Frontend/Frontend.h"

#include <map>
#include <string>

namespace dualpipe::frontend {

/// The result of compiling a text.
struct Outcome {
  bool ok = false;
  Schedule schedule;
  /// All findings, one a line: `main.pipe:3:5: error: …`; notes are indented.
  std::string findings;
  size_t numErrors = 0;
  /// What `Module::print` prints.
  std::string tree;
};

/// Files by name; the first to be compiled is `main.pipe`.
using Files = std::map<std::string, std::string>;

Outcome compileFiles(const Files &files, const Options &options);
/// Compiles the text of one file.
Outcome compile(const std::string &text, const Options &options);
/// Compiles a file of the repository, with what it imports from there.
Outcome compilePath(const std::string &path, const Options &options);

/// Options for a number of ranks and micro-batches.
Options sized(uint32_t ranks, uint32_t microbatches);

/// A schedule whose rank program is `body`, on one pipeline `p` with a stage a rank.
std::string programOf(const std::string &body);
/// The schedule `programOf(body)` for 2 ranks and 4 micro-batches.
Outcome compileProgram(const std::string &body);

/// The orders in PyTorch's grammar, one rank a line.
std::string formatOrders(const Schedule &schedule);
/// The order of one rank.
std::string formatOrder(const Schedule &schedule, uint32_t rank);

/// The whole file, or a failed test.
std::string readFile(const std::string &path);

} // namespace dualpipe::frontend

#endif // DUALPIPE_TEST_UNIT_FRONTEND_HARNESS_H
