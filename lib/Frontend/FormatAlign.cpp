//===- FormatAlign.cpp - columns of lines below each other -----------------===//
//
// Statements of one block that begin with the same keyword, with nothing else
// between them, are aligned:
//
//   phase "warm-up" { repeat ahead     { fwd main } }       the brace, where the block
//   phase "steady"  { repeat M - ahead { fwd main } }       stands on one line, and that
//                                                           of a block inside it
//   let depth = half - 1 - d                                the `=`
//   let h     = (d + 1) div 2
//   require P > 1          "message"                        the message
//   limit fwd..bwd_input  of main on r <= P - r             what follows the two ops
//   fwd       main.stage(s) @ i at s                        the chunks of ops with times,
//   bwd_input main.stage(s) @ i at 2 * P - s                of whichever kind
//
// unless that would make one of the lines too long. Comments behind lines that
// follow each other stand in one column.
//
//===----------------------------------------------------------------------===//

#include "FormatLines.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;

/// Where comments behind lines stand, unless the lines are longer.
static constexpr size_t kCommentColumn = 52;
/// Lines longer than this do not move the comments of their neighbours.
static constexpr size_t kLongLine = 70;

namespace {

/// A line and the element of it that is to stand in the column of the others.
struct Cell {
  size_t line;
  size_t marker;
};

class Aligner {
public:
  Aligner(Elements &elements, std::vector<Line> &lines) : elements(elements), lines(lines) {}

  void alignStatements();
  void alignComments();

private:
  /// The statements of a block that are waiting to be aligned.
  struct Group {
    /// What its lines begin with.
    llvm::StringRef key;
    std::vector<Cell> cells;
  };

  bool isTimedOp(const Line &line) const;
  llvm::StringRef getKey(const Line &line) const;
  size_t find(const Line &line, llvm::StringRef text) const;
  size_t findMarker(const Line &line) const;
  size_t findBrace(const Line &line, size_t begin) const;
  void add(size_t index);
  void closeGroup(Group &group);
  bool align(const std::vector<Cell> &cells);
  void alignInnerBraces(const std::vector<Cell> &cells);
  size_t alignCommentsFrom(size_t first);
  bool continuesComment(size_t index, size_t column) const;
  size_t moveComment(Line &line, size_t column);

  Elements &elements;
  std::vector<Line> &lines;
  /// By depth.
  std::vector<Group> groups;
};

} // namespace

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Whether braces behind the keyword are aligned. Those of `if` and `else` differ in what they say.
static bool isKeywordOfBlock(TokenKind kind) {
  return kind >= TokenKind::KwPipe && kind != TokenKind::KwIf && kind != TokenKind::KwElse;
}

/// The brace that ends the heading which begins at `begin`, if its block ends on the line.
size_t Aligner::findBrace(const Line &line, size_t begin) const {
  if (begin >= line.codeEnd || !isKeywordOfBlock(elements[begin].kind))
    return kNoElement;
  for (size_t i = begin; i != line.codeEnd; ++i) {
    if (elements[i].is(TokenKind::Semicolon) || elements[i].is(TokenKind::RightBrace))
      return kNoElement;
    if (elements[i].is(TokenKind::LeftBrace))
      return elements[i].partner < line.codeEnd ? i : kNoElement;
  }
  return kNoElement;
}

/// The first element of a line with this text.
size_t Aligner::find(const Line &line, llvm::StringRef text) const {
  for (size_t i = line.begin; i != line.codeEnd; ++i)
    if (elements[i].text == text)
      return i;
  return kNoElement;
}

/// An op of a timeline that stands alone on its line.
bool Aligner::isTimedOp(const Line &line) const {
  switch (elements[line.begin].kind) {
  case TokenKind::KwForward:
  case TokenKind::KwBackward:
  case TokenKind::KwBackwardInput:
  case TokenKind::KwBackwardWeight:
    return find(line, ";") == kNoElement &&
           (find(line, "at") != kNoElement || find(line, "gaps") != kNoElement);
  default:
    return false;
  }
}

/// Lines with the same key are aligned.
llvm::StringRef Aligner::getKey(const Line &line) const {
  return isTimedOp(line) ? "at" : elements[line.begin].text;
}

/// What is aligned in a line with others of the same key.
size_t Aligner::findMarker(const Line &line) const {
  const Element &first = elements[line.begin];
  if (first.is(TokenKind::KwLet))
    return find(line, "=");
  if (first.is(TokenKind::KwRequire)) {
    bool hasMessage = elements[line.codeEnd - 1].is(TokenKind::String);
    return hasMessage ? line.codeEnd - 1 : kNoElement;
  }
  if (first.text == "limit")
    return std::min({find(line, "of"), find(line, "on"), find(line, "<=")});
  return isTimedOp(line) ? line.begin + 1 : findBrace(line, line.begin);
}

/// Puts the markers into one column. Returns whether they stand in one.
bool Aligner::align(const std::vector<Cell> &cells) {
  auto getMarkerColumn = [&](const Cell &cell) {
    return getColumn(elements, lines[cell.line], cell.marker) + elements[cell.marker].spaces;
  };
  size_t column = 0;
  for (const Cell &cell : cells)
    column = std::max(column, getMarkerColumn(cell));
  for (const Cell &cell : cells) {
    size_t blanks = column - getMarkerColumn(cell);
    const Line &line = lines[cell.line];
    if (blanks != 0 && getColumn(elements, line, line.codeEnd) + blanks > kMaxWidth)
      return false;
  }
  for (const Cell &cell : cells)
    elements[cell.marker].spaces += column - getMarkerColumn(cell);
  return true;
}

/// Aligns the next braces in, where the lines follow each other and the headings
/// begin with the same keyword.
void Aligner::alignInnerBraces(const std::vector<Cell> &cells) {
  std::vector<Cell> inner;
  TokenKind keyword = TokenKind::EndOfFile;
  auto finish = [&] {
    if (inner.size() > 1 && align(inner))
      alignInnerBraces(inner);
    inner.clear();
  };
  for (const Cell &cell : cells) {
    size_t brace = findBrace(lines[cell.line], cell.marker + 1);
    bool joins = brace != kNoElement && !inner.empty() && inner.back().line + 1 == cell.line &&
                 elements[cell.marker + 1].is(keyword);
    if (!joins)
      finish();
    if (brace == kNoElement)
      continue;
    keyword = elements[cell.marker + 1].kind;
    inner.push_back({cell.line, brace});
  }
  finish();
}

void Aligner::closeGroup(Group &group) {
  if (group.cells.size() > 1 && align(group.cells) &&
      elements[group.cells.front().marker].is(TokenKind::LeftBrace))
    alignInnerBraces(group.cells);
  group = Group();
}

/// Adds a line to the group of its block, or begins another.
void Aligner::add(size_t index) {
  const Line &line = lines[index];
  while (groups.size() > line.depth + 1) {
    closeGroup(groups.back());
    groups.pop_back();
  }
  groups.resize(line.depth + 1);
  Group &group = groups.back();
  // The end of a block of several lines, which takes part in nothing.
  if (elements[line.begin].is(TokenKind::RightBrace))
    return;
  bool takesPart = line.isWhole && !line.isComment();
  if (!takesPart || line.blankBefore || getKey(line) != group.key)
    closeGroup(group);
  if (!takesPart)
    return;
  group.key = getKey(line);
  if (size_t marker = findMarker(line); marker != kNoElement)
    group.cells.push_back({index, marker});
}

void Aligner::alignStatements() {
  for (size_t i = 0; i != lines.size(); ++i)
    add(i);
  for (Group &group : groups)
    closeGroup(group);
}

//===----------------------------------------------------------------------===//
// Comments
//===----------------------------------------------------------------------===//

/// Whether the line goes on with the comment behind the line before, which stood in `column`.
bool Aligner::continuesComment(size_t index, size_t column) const {
  const Line &line = lines[index];
  const Element &comment = elements[line.begin];
  // One that is indented so far may stand there by itself.
  return line.isComment() && !line.blankBefore && line.indent < kCommentColumn &&
         comment.sourceColumn == column;
}

/// Puts the comment of a line into a column, or behind a line that is longer. Returns where it
/// stands now.
size_t Aligner::moveComment(Line &line, size_t column) {
  if (line.isComment())
    return line.indent = column;
  size_t width = getColumn(elements, line, line.codeEnd);
  elements[line.codeEnd].spaces = width < column ? column - width : 1;
  return width + elements[line.codeEnd].spaces;
}

/// Aligns the comments of the lines that follow `first` directly. Returns the next line.
size_t Aligner::alignCommentsFrom(size_t first) {
  size_t end = first, column = kCommentColumn, sourceColumn = kNoElement;
  for (; end != lines.size(); ++end) {
    const Line &line = lines[end];
    bool trailing = line.hasTrailingComment() && (end == first || !line.blankBefore);
    if (!trailing && (end == first || !continuesComment(end, sourceColumn)))
      break;
    sourceColumn = elements[line.end - 1].sourceColumn;
    size_t width = trailing ? getColumn(elements, line, line.codeEnd) : 0;
    if (width <= kLongLine)
      column = std::max(column, width + 1);
  }
  size_t previous = column;
  for (size_t i = first; i != end; ++i)
    previous = moveComment(lines[i], lines[i].isComment() ? previous : column);
  return std::max(end, first + 1);
}

void Aligner::alignComments() {
  for (size_t i = 0; i != lines.size();)
    i = alignCommentsFrom(i);
}

void frontend::alignColumns(Elements &elements, std::vector<Line> &lines) {
  Aligner aligner(elements, lines);
  aligner.alignStatements();
  aligner.alignComments();
}
