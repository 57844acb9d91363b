//===- CompileExample.h - examples compiled inside a test program -----------===//

#ifndef DUALPIPE_TEST_SUPPORT_COMPILEEXAMPLE_H
#define DUALPIPE_TEST_SUPPORT_COMPILEEXAMPLE_H

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"
#include "dualpipe/Frontend/Frontend.h"
#include "dualpipe/Pipelines/Compiler.h"
#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/Checker.h"

#include "llvm/Support/SourceMgr.h"

#include <optional>
#include <stdexcept>
#include <string>

namespace dualpipe::test {

/// Everything that a compilation leaves behind.
class CompiledExample {
public:
  /// Compiles `examples/<name>.pipe`. Throws with the first finding where it cannot.
  CompiledExample(const std::string &name, uint32_t ranks, uint32_t microbatches,
                  const CompileOptions &options = {}, bool forwardOnly = false)
      : schedule(instantiate(name, ranks, microbatches, forwardOnly)), index(check()),
        timeline(index, options.planCosts) {
    context.loadDialect<pipe::PipeDialect, stream::StreamDialect>();
    llvm::FailureOr<program::Program> compiled = compileProgram(&context, timeline, options);
    if (failed(compiled))
      throw std::runtime_error("cannot compile " + name);
    program = std::move(*compiled);
  }

  const Schedule schedule;

private:
  static Schedule instantiate(const std::string &name, uint32_t ranks, uint32_t microbatches,
                              bool forwardOnly) {
    llvm::SourceMgr sources;
    DiagnosticSink sink;
    frontend::Module module = frontend::parseFile(
        sources, std::string(DUALPIPE_SOURCE_DIR) + "/examples/" + name + ".pipe", sink);
    Schedule schedule;
    frontend::Options options;
    options.ranks = ranks;
    options.microbatches = microbatches;
    options.forwardOnly = forwardOnly;
    if (!module.isValid() || failed(frontend::instantiate(module, options, schedule, sink)))
      throw std::runtime_error(sink.diagnostics().front().message);
    return schedule;
  }
  OpIndex check() {
    DiagnosticSink sink;
    OpIndex result = checkSchedule(schedule, sink);
    if (sink.hasErrors())
      throw std::runtime_error(sink.diagnostics().front().message);
    return result;
  }

  OpIndex index;
  mlir::MLIRContext context;

public:
  const Timeline timeline;
  program::Program program;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_COMPILEEXAMPLE_H
