//===- Library.h - the schedules of examples/ as the tests see them ---------===//
//
// One entry for each file: its parameter, the values of it that are tested, and
// which sizes are legal, stated again and apart from the file.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_UNIT_LIBRARY_LIBRARY_H
#define DUALPIPE_TEST_UNIT_LIBRARY_LIBRARY_H

#include "test/support/AsSoonAsPossible.h"

#include "dualpipe/Frontend/Frontend.h"
#include "dualpipe/Schedule/Schedule.h"

#include "llvm/Support/SourceMgr.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace dualpipe::test {

struct Size {
  uint32_t ranks, microbatches;
};

inline std::ostream &operator<<(std::ostream &os, Size size) {
  return os << size.ranks << " x " << size.microbatches;
}

/// A schedule of the library.
struct Entry {
  const char *name; ///< of the file, without its ending
  /// The parameter beyond ranks and micro-batches, or null.
  const char *param = nullptr;
  /// The values of it that are tested, the default first; one 0 where there is no parameter.
  std::vector<int64_t> values = {0};
  bool (*isLegal)(Size size, int64_t value) = [](Size, int64_t) { return true; };
  /// Parts into which the unit of the literature is cut: stages of a rank in one pipeline,
  /// or slices of a micro-batch.
  uint32_t (*getParts)(int64_t value) = [](int64_t) { return 1u; };
};

inline std::ostream &operator<<(std::ostream &os, const Entry &entry) { return os << entry.name; }

/// Every file of examples/, by name.
const std::vector<Entry> &getLibrary();
const Entry &findEntry(const std::string &name);
/// Those for which `isMeant` holds.
std::vector<Entry> selectEntries(const std::function<bool(const Entry &)> &isMeant);
/// The name of an instance of a test over entries.
std::string nameOfTest(const testing::TestParamInfo<Entry> &info);

/// `examples/<name>.pipe`, parsed once.
class Example {
public:
  /// Throws with the first finding where the file cannot be parsed.
  explicit Example(const std::string &name);

  struct Options {
    std::optional<int64_t> value = {}; ///< of the entry's parameter; its default where absent
    Costs planCosts = {};
    bool forwardOnly = false;
  };
  /// Findings go to `sink`; nothing where there was an error.
  std::optional<Schedule> instantiate(Size size, const Options &options,
                                      DiagnosticSink &sink) const;
  /// The same, checked. Throws with the first finding.
  Schedule instantiate(Size size, const Options &options) const;
  Schedule instantiate(Size size) const { return instantiate(size, Options()); }

private:
  const Entry &entry;
  std::unique_ptr<llvm::SourceMgr> sources;
  std::optional<frontend::Module> module;
};

/// Times of the ops in any unit; a fused group takes the sum.
struct OpTimes {
  int64_t fwd = 1, bwdInput = 1, bwdWeight = 1;

  int64_t get(OpKind kind) const;
};

/// The order run as soon as possible. A transfer takes `latency`, and where it `occupies` its
/// channel, the next one waits for it.
AsapResult measure(const Schedule &schedule, const OpTimes &times = {}, int64_t latency = 0,
                   bool occupies = false);

/// The longest that a rank has nothing to do.
int64_t getMostIdle(const AsapResult &result);
unsigned getHighestPeak(const AsapResult &result);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_LIBRARY_LIBRARY_H
