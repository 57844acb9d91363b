//===- fuzz_pipe.cpp - any text through the front end ----------------------===//
//
// A text is parsed, run for 2 ranks and 4 micro-batches, checked and timed, and
// laid out. Sanitizers watch; what this file checks itself:
//
// - failure comes with a finding, and success without;
// - a legal schedule is the same as its explicit program;
// - a layout is its own layout;
// - a text that is valid is valid in its layout, with the same tree.
//
// scripts/fuzz.sh builds and runs it.
//
//===----------------------------------------------------------------------===//

#include "Fuzzing.h"
#include "dualpipe/Frontend/Format.h"
#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Schedule/Timeline.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <filesystem>

using namespace dualpipe;
using namespace dualpipe::frontend;
using namespace dualpipe::fuzzing;
using llvm::StringRef;

namespace {

/// What the texts can import, by name.
std::vector<std::pair<std::string, std::unique_ptr<llvm::MemoryBuffer>>> examples;

Options getOptions() {
  Options options;
  options.ranks = 2;
  options.microbatches = 4;
  options.limits.maxFileBytes = 1 << 16;
  options.limits.maxCallDepth = 1000;
  options.limits.maxRanks = 64;
  options.limits.maxForwards = 1 << 12;
  options.limits.maxSteps = 20000;
  return options;
}

/// A tree without the places of its nodes.
std::string dropPlaces(StringRef tree) {
  std::string out;
  for (StringRef line : llvm::split(tree, '\n'))
    out += line.substr(0, line.rfind("  @")).str() + "\n";
  return out;
}

/// The tree of a text, or nothing where the text is not valid. Runs its schedules, where asked to.
std::optional<std::string> compile(StringRef text, bool run) {
  auto fileSystem = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const auto &[name, buffer] : examples)
    fileSystem->addFileNoOwn(name, 0, buffer->getMemBufferRef());
  llvm::SourceMgr sources;
  sources.setVirtualFileSystem(fileSystem);
  unsigned buffer = sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, "main.pipe"), llvm::SMLoc());

  Options options = getOptions();
  DiagnosticSink sink;
  Module module = parse(sources, buffer, sink, options.limits);
  expect(module.isValid() == !sink.hasErrors(), "a module is valid where there are no errors");
  if (!module.isValid())
    return std::nullopt;
  for (const std::string &name : module.getScheduleNames()) {
    for (bool forwardOnly : {false, true}) {
      if (!run)
        continue;
      options.schedule = name;
      options.forwardOnly = forwardOnly;
      DiagnosticSink findings;
      Schedule schedule;
      bool ok = llvm::succeeded(instantiate(module, options, schedule, findings));
      expect(ok == !findings.hasErrors(), "a schedule is made where there are no errors");
      if (!ok)
        continue;
      OpIndex index = checkSchedule(schedule, findings);
      if (findings.hasErrors())
        continue;
      Timeline timeline(index, schedule.planCosts);
      printAndCompile(schedule);
    }
  }
  std::string tree;
  llvm::raw_string_ostream os(tree);
  module.print(os);
  return dropPlaces(tree);
}

void layOut(StringRef text, const std::optional<std::string> &tree) {
  Limits limits = getOptions().limits;
  DiagnosticSink sink;
  llvm::FailureOr<std::string> once = formatText(text, sink, limits);
  expect(llvm::succeeded(once) == !sink.hasErrors(), "there is a layout where there are no errors");
  if (llvm::failed(once)) {
    expect(!tree, "a valid text has a layout");
    return;
  }
  // Indentation may have made it too long.
  if (once->size() > limits.maxFileBytes)
    return;
  llvm::FailureOr<std::string> twice = formatText(*once, sink, limits);
  expect(llvm::succeeded(twice), "a layout has a layout");
  expect(*twice == *once, "a layout is its own layout");
  if (tree)
    expect(compile(*once, /*run=*/false) == tree, "a layout has the same tree");
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  llvm::parallel::strategy = llvm::hardware_concurrency(1);
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(DUALPIPE_SOURCE_DIR "/examples"))
    if (entry.path().extension() == ".pipe")
      if (auto buffer = llvm::MemoryBuffer::getFile(entry.path().string()))
        examples.emplace_back(entry.path().filename().string(), std::move(*buffer));
  expect(!examples.empty(), "there are examples");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  layOut(text, compile(text, /*run=*/true));
  return 0;
}
