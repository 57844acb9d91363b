//===- Diagnostics.h - located diagnostics on plain data -------------------===//
//
// The front end and the checks on order tables know nothing of MLIR: they hand
// their findings to a sink. The driver replays a sink through MLIR's diagnostic
// engine, which prints the `.pipe` line with a caret and lets
// `--verify-diagnostics` check `expected-error` comments inside `.pipe` files.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SUPPORT_DIAGNOSTICS_H
#define DUALPIPE_SUPPORT_DIAGNOSTICS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe {

/// A place in a source file. `file` indexes the table of file names that the
/// owner of the location keeps (`Schedule::files`); line and column count from
/// one; line 0 means "no place is known".
struct SourceLoc {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t column = 0;

  bool isValid() const { return line != 0; }
  friend bool operator==(const SourceLoc &a, const SourceLoc &b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
  }
};

/// A remark says what was inferred or left out, where nothing is wrong.
enum class Severity : uint8_t { Error, Warning, Remark };

/// One finding with the notes that explain it.
struct Diagnostic {
  struct Note {
    SourceLoc loc;
    std::string message;
  };

  Severity severity = Severity::Error;
  SourceLoc loc;
  std::string message;
  std::vector<Note> notes;

  Diagnostic &note(SourceLoc where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
  }
};

/// Collects findings in the order in which they were made.
class DiagnosticSink {
public:
  Diagnostic &error(SourceLoc loc, std::string message) {
    ++errors;
    return all.emplace_back(Diagnostic{Severity::Error, loc, std::move(message), {}});
  }
  Diagnostic &warning(SourceLoc loc, std::string message) {
    return all.emplace_back(Diagnostic{Severity::Warning, loc, std::move(message), {}});
  }

  Diagnostic &remark(SourceLoc loc, std::string message) {
    return all.emplace_back(Diagnostic{Severity::Remark, loc, std::move(message), {}});
  }

  bool hasErrors() const { return errors != 0; }
  size_t numErrors() const { return errors; }
  const std::vector<Diagnostic> &diagnostics() const { return all; }

private:
  std::vector<Diagnostic> all;
  size_t errors = 0;
};

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_DIAGNOSTICS_H
