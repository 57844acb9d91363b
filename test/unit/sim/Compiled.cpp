//===- Compiled.cpp - schedules and their programs --------------------------===//

#include "Compiled.h"

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"
#include "dualpipe/Pipelines/Compiler.h"
#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Target/ReadTorchCsv.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

using namespace dualpipe;
using namespace dualpipe::test;

static mlir::MLIRContext &getContext() {
  static mlir::MLIRContext context;
  context.loadDialect<pipe::PipeDialect, stream::StreamDialect>();
  return context;
}

Compiled test::compile(Schedule schedule, unsigned spares) {
  DiagnosticSink sink;
  OpIndex index = checkSchedule(schedule, sink);
  if (sink.hasErrors())
    throw std::runtime_error(sink.diagnostics().front().message);
  CompileOptions options;
  options.planCosts = schedule.planCosts;
  options.spares = spares;
  Timeline timeline(index, options.planCosts);
  llvm::FailureOr<program::Program> program = compileProgram(&getContext(), timeline, options);
  if (failed(program))
    throw std::runtime_error("cannot compile " + schedule.name);
  return {schedule, std::move(*program)};
}

Compiled test::compileExample(const std::string &name, Size size, const Example::Options &options) {
  return compile(Example(name).instantiate(size, options));
}

Compiled test::compileOrder(const std::string &file) {
  std::ifstream stream(std::string(DUALPIPE_SOURCE_DIR) + "/test/reference/orders/" + file);
  std::stringstream text;
  text << stream.rdbuf();
  TorchReadOptions options;
  options.file = file;
  options.name = file;
  Schedule schedule;
  DiagnosticSink sink;
  if (!readTorchCsv(text.str(), options, schedule, sink))
    throw std::runtime_error(sink.diagnostics().front().message);
  return compile(std::move(schedule));
}

runtime::Prediction test::predict(const program::Program &program, const std::string &text) {
  Result<runtime::SimulationCosts> costs = runtime::SimulationCosts::parse(text);
  if (!costs)
    throw std::runtime_error(costs.message());
  Result<runtime::Prediction> prediction = runtime::predict(program, *costs);
  if (!prediction)
    throw std::runtime_error(prediction.message());
  return std::move(*prediction);
}
