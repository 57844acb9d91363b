//===- Output.cpp - writing what was compiled -------------------------------===//

#include "Output.h"

#include "dualpipe/Program/Writer.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace mlir;

static LogicalResult complain(const std::string &output, const std::string &why) {
  llvm::errs() << "dualpipe-opt: error: cannot write '" << output << "': " << why << "\n";
  return failure();
}

LogicalResult opt::writeText(const std::string &output,
                             llvm::function_ref<void(llvm::raw_ostream &)> print) {
  llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &os) {
    print(os);
    return llvm::Error::success();
  });
  if (error)
    return complain(output, llvm::toString(std::move(error)));
  return success();
}

LogicalResult opt::writeModule(const std::string &output, ModuleOp module,
                               const MlirOptMainConfig &config) {
  LogicalResult written = success();
  LogicalResult result = writeText(output, [&](llvm::raw_ostream &os) {
    if (config.shouldEmitBytecode())
      written = writeBytecodeToFile(module, os);
    else
      module->print(os);
  });
  return success(succeeded(result) && succeeded(written));
}

LogicalResult opt::writeProgram(const std::string &output, const program::Program &program,
                                MLIRContext &context) {
  std::vector<program::RankSection> sections(program.ranks.size());
  parallelFor(&context, 0, sections.size(), [&](size_t i) {
    sections[i] = {program.ranks[i].rank, program::serializeRank(program.ranks[i])};
  });
  Status status = program::writeProgramFile(output, program.shared, sections);
  if (!status)
    return complain(output, status.message());
  return success();
}
