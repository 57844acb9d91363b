//===- Harness.cpp - compiles text for the tests of the front end ----------===//

#include "Harness.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

static std::string format(llvm::ArrayRef<std::string> files, SourceLoc loc) {
  if (!loc.isValid())
    return "";
  EXPECT_LT(loc.file, files.size()) << "a finding in a file that is not in the table";
  std::string name = loc.file < files.size() ? files[loc.file] : "?";
  return name + ":" + std::to_string(loc.line) + ":" + std::to_string(loc.column) + ": ";
}

static void collect(Outcome &run, const Module &module, const DiagnosticSink &sink) {
  for (const Diagnostic &diagnostic : sink.diagnostics()) {
    run.findings += format(module.getFiles(), diagnostic.loc) +
                    (diagnostic.severity == Severity::Error ? "error: " : "warning: ") +
                    diagnostic.message + "\n";
    for (const Diagnostic::Note &note : diagnostic.notes)
      run.findings += "  " + format(module.getFiles(), note.loc) + "note: " + note.message + "\n";
  }
  run.numErrors = sink.numErrors();
}

static Outcome finish(Module module, const Options &options, DiagnosticSink &sink) {
  Outcome run;
  llvm::raw_string_ostream tree(run.tree);
  module.print(tree);
  if (module.isValid())
    run.ok = llvm::succeeded(instantiate(module, options, run.schedule, sink));
  EXPECT_EQ(run.ok, !sink.hasErrors()) << "success and findings disagree";
  collect(run, module, sink);
  return run;
}

Outcome frontend::compileFiles(const Files &files, const Options &options) {
  auto fileSystem = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const auto &[name, text] : files)
    fileSystem->addFile(name, 0, llvm::MemoryBuffer::getMemBufferCopy(text, name));
  llvm::SourceMgr sources;
  sources.setVirtualFileSystem(fileSystem);
  DiagnosticSink sink;
  return finish(parseFile(sources, "main.pipe", sink, options.limits), options, sink);
}

Outcome frontend::compile(const std::string &text, const Options &options) {
  return compileFiles({{"main.pipe", text}}, options);
}

Outcome frontend::compilePath(const std::string &path, const Options &options) {
  llvm::SourceMgr sources;
  DiagnosticSink sink;
  return finish(parseFile(sources, path, sink, options.limits), options, sink);
}

Options frontend::sized(uint32_t ranks, uint32_t microbatches) {
  Options options;
  options.ranks = ranks;
  options.microbatches = microbatches;
  return options;
}

std::string frontend::programOf(const std::string &body) {
  return "pipe 1\n"
         "schedule s(ranks P, microbatches M) {\n"
         "  pipeline p { stages P; microbatches M; place s -> s }\n"
         "  rank r {\n" +
         body + "\n  }\n}\n";
}

Outcome frontend::compileProgram(const std::string &body) {
  return compile(programOf(body), sized(2, 4));
}

std::string frontend::formatOrder(const Schedule &schedule, uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  std::string line;
  for (size_t i = 0; i < order.size();) {
    size_t end = order.groupEnd(i);
    std::string cell;
    for (size_t k = i; k < end; ++k)
      cell += (k == i ? "" : ";") + std::to_string(order.stage[k]) + getLetter(order.kind[k]) +
              std::to_string(order.microbatch[k]);
    line += (i == 0 ? "" : ",") + (end - i > 1 ? "(" + cell + ")OVERLAP_F_B" : cell);
    i = end;
  }
  return line;
}

std::string frontend::formatOrders(const Schedule &schedule) {
  std::string text;
  for (uint32_t rank = 0; rank < schedule.ranks.size(); ++rank)
    text += formatOrder(schedule, rank) + "\n";
  return text;
}

std::string frontend::readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << "cannot read " << path;
  return buffer ? (*buffer)->getBuffer().str() : "";
}
