//===- Output.cpp - writing what was compiled -------------------------------===//

#include "Output.h"
#include "Complain.h"

#include "dualpipe/Program/Writer.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace mlir;

static LogicalResult cannotWrite(const std::string &output, const std::string &why) {
  return opt::complain("cannot write '" + llvm::Twine(output) + "': " + why);
}

/// The error of a stream that cannot take what was written; LLVM aborts on one
/// that nobody has looked at.
static llvm::Error flush(llvm::raw_fd_ostream &os) {
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  std::error_code error = os.error();
  os.clear_error();
  return llvm::errorCodeToError(error);
}

static constexpr const char *kNowhere = "/dev/null";

/// A file that is renamed into place would replace a pipe or a device.
static bool canBeReplaced(const std::string &output) {
  llvm::sys::fs::file_status status;
  return output == "-" || output == kNowhere || llvm::sys::fs::status(output, status) ||
         llvm::sys::fs::is_regular_file(status);
}

LogicalResult opt::writeText(const std::string &output,
                             llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (!canBeReplaced(output))
    return cannotWrite(output, "not a regular file");
  llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &os) {
    print(os);
    // Everything but nowhere is a file.
    return output == kNowhere ? llvm::Error::success()
                              : flush(static_cast<llvm::raw_fd_ostream &>(os));
  });
  if (error)
    return cannotWrite(output, llvm::toString(std::move(error)));
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
    return cannotWrite(output, status.message());
  return success();
}
