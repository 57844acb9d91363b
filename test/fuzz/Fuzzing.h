//===- Fuzzing.h - what the fuzzers check -----------------------------------===//

#ifndef DUALPIPE_TEST_FUZZ_FUZZING_H
#define DUALPIPE_TEST_FUZZ_FUZZING_H

#include "dualpipe/Frontend/Frontend.h"
#include "dualpipe/Schedule/Diff.h"
#include "dualpipe/Target/PrintPipe.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace dualpipe::fuzzing {

/// Stops the fuzzer where `holds` is false.
inline void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "fuzzing: this does not hold: %s\n", what);
  std::abort();
}

/// Stops the fuzzer unless both schedules do the same in the same order.
inline void expectSame(const Schedule &a, const Schedule &b, const char *what) {
  for (const std::string &difference : diffSchedules(a, b)) {
    std::fprintf(stderr, "fuzzing: %s\n", difference.c_str());
    expect(false, what);
  }
}

/// A legal schedule either has no explicit program, or one that compiles to the same schedule.
inline void printAndCompile(const Schedule &schedule) {
  Result<std::string> text = printPipe(schedule);
  if (!text)
    return;
  llvm::SourceMgr sources;
  unsigned buffer = sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(*text, "explicit.pipe"), llvm::SMLoc());
  frontend::Options options;
  options.ranks = schedule.numRanks;
  options.microbatches = schedule.numMicrobatches;
  options.forwardOnly = !schedule.training;
  DiagnosticSink sink;
  frontend::Module module = frontend::parse(sources, buffer, sink, options.limits);
  Schedule again;
  bool ok =
      module.isValid() && llvm::succeeded(frontend::instantiate(module, options, again, sink));
  if (!ok)
    std::fprintf(stderr, "fuzzing: %s\n%s", sink.diagnostics().front().message.c_str(),
                 text->c_str());
  expect(ok, "an explicit program compiles");
  expectSame(schedule, again, "an explicit program gives the same schedule");
}

} // namespace dualpipe::fuzzing

#endif // DUALPIPE_TEST_FUZZ_FUZZING_H
