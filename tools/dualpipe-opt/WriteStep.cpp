//===- WriteStep.cpp - programs as CUDA C++ ---------------------------------===//

#include "WriteStep.h"
#include "Complain.h"
#include "Output.h"

#include "dualpipe/Runtime/EmitCuda.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

LogicalResult opt::writeStep(const DriverOptions &options, const program::Program &program,
                             MLIRContext &context) {
  const std::string &folder = options.output;
  if (std::error_code error = llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true,
                                                                llvm::sys::fs::perms::all_all))
    return complain("cannot make the folder '" + folder + "': " + error.message());
  if (!llvm::sys::fs::is_directory(folder))
    return complain("cannot make the folder '" + folder + "': a file has this name");
  auto write = [&](const std::string &name, const std::string &text) {
    return writeText(folder + "/" + name, [&](raw_ostream &os) { os << text; });
  };
  for (const program::RankProgram &rank : program.ranks)
    if (failed(write(runtime::getRankFileName(rank.rank), runtime::emitRank(program.shared, rank))))
      return failure();
  if (failed(write("step.cpp", runtime::emitStep(program))) ||
      failed(write("CMakeLists.txt", runtime::emitBuildFile(program))))
    return failure();
  return writeProgram(folder + "/" + runtime::getEmittedName(program.shared) + ".dpx", program,
                      context);
}
