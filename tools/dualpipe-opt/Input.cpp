//===- Input.cpp - opening what is to be compiled ---------------------------===//

#include "Input.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

const char *opt::describe(InputKind kind) {
  switch (kind) {
  case InputKind::Schedule:
    return "a .pipe file";
  case InputKind::Csv:
    return "a schedule in PyTorch's grammar";
  case InputKind::Program:
    return "a compiled program";
  case InputKind::Module:
    return "an MLIR module";
  }
  return "";
}

static std::optional<InputKind> findKindByEnding(StringRef name) {
  if (name.ends_with(".pipe"))
    return InputKind::Schedule;
  if (name.ends_with(".csv"))
    return InputKind::Csv;
  if (name.ends_with(".dpx"))
    return InputKind::Program;
  if (name.ends_with(".mlir") || name.ends_with(".mlirbc"))
    return InputKind::Module;
  return std::nullopt;
}

/// What is left of a text without blanks and comments in front.
static StringRef skipComments(StringRef text) {
  for (text = text.ltrim(); text.consume_front("//"); text = text.ltrim())
    text = text.drop_until([](char c) { return c == '\n'; });
  return text;
}

static InputKind findKindByContent(StringRef bytes) {
  if (bytes.starts_with("\x89"
                        "DPX"))
    return InputKind::Program;
  bytes.consume_front("\xef\xbb\xbf");
  StringRef text = skipComments(bytes);
  // `pipe.rank` is MLIR.
  if (text.consume_front("pipe") && !text.empty() && llvm::isSpace(text.front()))
    return InputKind::Schedule;
  StringRef cell = bytes.ltrim(" \t\r\n,");
  if (!cell.empty() && (llvm::isDigit(cell.front()) || cell.front() == '('))
    return InputKind::Csv;
  return InputKind::Module;
}

Result<Input> opt::openInput(const std::string &name) {
  // Often a mistake of someone who waits for an answer.
  if (name == "-" && llvm::sys::Process::StandardInIsUserInput())
    llvm::errs() << "(reading the standard input; end it with ctrl-d, stop with ctrl-c)\n";
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(name, &error);
  if (!buffer)
    return Status::failure(error);
  std::optional<InputKind> kind = findKindByEnding(name);
  if (!kind)
    kind = findKindByContent(buffer->getBuffer());
  return Input{name, *kind, std::move(buffer)};
}

static StringRef getWord(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "";
}

static void printPlace(mlir::Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return;
  llvm::errs() << place.getFilename().getValue() << ":";
  if (place.getLine() != 0)
    llvm::errs() << place.getLine() << ":" << place.getColumn() << ":";
  llvm::errs() << " ";
}

/// Prints a diagnostic with its place and without the line there.
static void printPlainly(mlir::Diagnostic &diagnostic) {
  printPlace(diagnostic.getLocation());
  llvm::errs() << getWord(diagnostic.getSeverity()) << ": " << diagnostic << "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    printPlainly(note);
}

LogicalResult
opt::compileInput(Input input, const MlirOptMainConfig &config, DialectRegistry &registry,
                  llvm::function_ref<LogicalResult(llvm::SourceMgr &, MLIRContext &)> compile) {
  InputKind kind = input.kind;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(input.buffer), SMLoc());
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  if (config.shouldVerifyDiagnostics()) {
    SourceMgrDiagnosticVerifierHandler handler(sources, &context, config.verifyDiagnosticsLevel());
    (void)compile(sources, context);
    return handler.verify();
  }
  if (kind == InputKind::Csv || kind == InputKind::Program) {
    ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &diagnostic) {
      printPlainly(diagnostic);
      return success();
    });
    return compile(sources, context);
  }
  SourceMgrDiagnosticHandler handler(sources, &context);
  return compile(sources, context);
}
