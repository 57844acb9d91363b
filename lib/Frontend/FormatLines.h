//===- FormatLines.h - what the formatter works on -------------------------===//
//
// A text is a sequence of elements, its tokens and comments. Layout decides
// which of them begin a line, the indentation of the lines and the blanks
// between the elements of a line; columns are then aligned, and the lines
// printed. Widths and columns count characters from 0.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_FORMATLINES_H
#define DUALPIPE_LIB_FRONTEND_FORMATLINES_H

#include "Lexer.h"
#include "dualpipe/Frontend/Frontend.h"

#include <vector>

namespace dualpipe::frontend {

/// Columns that the formatter does not make a line longer than.
constexpr size_t kMaxWidth = 100;
constexpr size_t kNoElement = ~size_t(0);

/// A token, or a comment up to the end of its line.
struct Element {
  /// Of a token; `EndOfFile` for a comment.
  TokenKind kind = TokenKind::EndOfFile;
  llvm::StringRef text;
  /// Ends of lines before it in the source; 2 stands for more.
  unsigned newlines = 0;
  /// Column in the source.
  size_t sourceColumn = 0;
  /// The token before it, over comments.
  size_t tokenBefore = kNoElement;
  /// Of a bracket: the other one of the pair.
  size_t partner = kNoElement;
  /// First on its line in the layout.
  bool breaks = false;
  /// Blanks before it, where it is not the first on its line.
  size_t spaces = 0;

  bool isComment() const { return kind == TokenKind::EndOfFile; }
  bool isTrailingComment() const { return isComment() && newlines == 0; }
  bool is(TokenKind other) const { return kind == other; }
  size_t getWidth() const;
};

using Elements = std::vector<Element>;

/// Elements `[begin, end)`, with what stands behind them.
struct Line {
  size_t begin = 0;
  /// The end of the tokens; a line of a comment alone has none.
  size_t codeEnd = 0;
  size_t end = 0;
  size_t depth = 0;
  size_t indent = 0;
  bool blankBefore = false;
  /// Begins a statement and ends in it: no other line depends on its columns.
  bool isWhole = true;

  bool isComment() const { return begin == codeEnd; }
  bool hasTrailingComment() const { return !isComment() && codeEnd != end; }
};

/// Reads the tokens and comments of a text, with pairs of brackets. Fails with a finding.
llvm::FailureOr<Elements> readElements(llvm::StringRef text, DiagnosticSink &sink,
                                       const Limits &limits);

/// Sets the blanks between neighbours.
void setSpaces(Elements &elements);

/// Decides where lines begin and how far they are indented.
std::vector<Line> breakLines(Elements &elements);

/// Aligns braces, `=`, messages and comments of lines that stand below each other.
void alignColumns(Elements &elements, std::vector<Line> &lines);

/// The column behind the elements `[line.begin, end)`.
size_t getColumn(const Elements &elements, const Line &line, size_t end);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_FORMATLINES_H
