//===- FormatPipe.cpp - the formatter of `.pipe` files ----------------------===//

#include "FormatPipe.h"
#include "Complain.h"
#include "Output.h"

#include "dualpipe/Frontend/Format.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::opt;

static void report(const DiagnosticSink &sink, llvm::SourceMgr &sources) {
  for (const Diagnostic &found : sink.diagnostics()) {
    llvm::SMLoc place =
        sources.FindLocForLineAndColumn(sources.getMainFileID(), found.loc.line, found.loc.column);
    sources.PrintMessage(place, llvm::SourceMgr::DK_Error, found.message);
  }
}

/// The file behind a link, which is to stay a link.
static std::string followLinks(const std::string &output) {
  llvm::SmallString<128> path;
  if (output == "-" || llvm::sys::fs::real_path(output, path))
    return output;
  return path.str().str();
}

llvm::LogicalResult opt::formatPipe(const DriverOptions &options) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = mlir::openInputFile(options.input, &error);
  if (!buffer)
    return complain(error);
  llvm::StringRef text = buffer->getBuffer();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());

  DiagnosticSink sink;
  llvm::FailureOr<std::string> formatted = frontend::formatText(text, sink);
  report(sink, sources);
  if (llvm::failed(formatted))
    return llvm::failure();
  // A file that is laid out already keeps its time of change.
  if (llvm::sys::fs::equivalent(options.input, options.output) && *formatted == text)
    return llvm::success();
  return writeText(followLinks(options.output), [&](llvm::raw_ostream &os) { os << *formatted; });
}
