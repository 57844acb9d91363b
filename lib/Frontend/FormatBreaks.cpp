//===- FormatBreaks.cpp - where lines begin, and their indentation ---------===//
//
// Lines end where they ended in the source, with these exceptions: a `{`, and an
// `else` behind the `}` of a block of several lines, go up to the line before;
// a block that does not stand on one line, or does not fit one, has its braces
// at the end and at the beginning of lines.
//
//===----------------------------------------------------------------------===//

#include "FormatLines.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;

static constexpr size_t kIndent = 2;
/// How far the second line of a statement stands behind the first.
static constexpr size_t kContinuationIndent = 4;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Lets `else` follow a `}` that begins a line.
static void joinElse(Elements &elements, size_t brace) {
  size_t next = brace + 1;
  if (next < elements.size() && elements[next].is(TokenKind::KwElse) &&
      elements[brace].is(TokenKind::RightBrace) && elements[brace].breaks)
    elements[next].breaks = false;
}

/// Puts the braces of a block at the end and at the beginning of lines.
static void openBlock(Elements &elements, size_t brace) {
  size_t first = brace + 1, close = elements[brace].partner;
  if (first != elements.size() && first != close && !elements[first].isTrailingComment())
    elements[first].breaks = true;
  if (close == kNoElement)
    return;
  elements[close].breaks = close != first;
  joinElse(elements, close);
}

/// Whether each block has a line end in it.
static std::vector<bool> findBlocksOfLines(const Elements &elements) {
  std::vector<size_t> breaksUpTo(elements.size());
  size_t breaks = 0;
  for (size_t i = 0; i != elements.size(); ++i)
    breaksUpTo[i] = breaks += elements[i].breaks;
  std::vector<bool> hasLines(elements.size(), false);
  for (size_t i = 0; i != elements.size(); ++i) {
    size_t close = elements[i].partner;
    if (elements[i].is(TokenKind::LeftBrace))
      hasLines[i] = close == kNoElement || breaksUpTo[close] != breaksUpTo[i];
  }
  return hasLines;
}

static void decideBreaks(Elements &elements) {
  // 1. As in the source, but a brace begins no line.
  for (size_t i = 0; i != elements.size(); ++i)
    elements[i].breaks =
        i == 0 || (elements[i].newlines != 0 &&
                   (!elements[i].is(TokenKind::LeftBrace) || elements[i - 1].isComment()));
  // 2. Blocks of several lines.
  std::vector<bool> hasLines = findBlocksOfLines(elements);
  for (size_t i = 0; i != elements.size(); ++i)
    if (hasLines[i])
      openBlock(elements, i);
  // 3. `} else {`.
  for (size_t i = 0; i != elements.size(); ++i)
    joinElse(elements, i);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// Whether a statement goes on in the next line after this token.
static bool waitsForOperand(const Element &token) {
  switch (token.kind) {
  case TokenKind::Comma:
  case TokenKind::Dot:
  case TokenKind::DotDot:
  case TokenKind::Arrow:
  case TokenKind::At:
  case TokenKind::Assign:
  case TokenKind::Equal:
  case TokenKind::NotEqual:
  case TokenKind::Less:
  case TokenKind::LessEqual:
  case TokenKind::Greater:
  case TokenKind::GreaterEqual:
  case TokenKind::Plus:
  case TokenKind::Minus:
  case TokenKind::Star:
  case TokenKind::Slash:
  case TokenKind::KwAnd:
  case TokenKind::KwOr:
  case TokenKind::KwNot:
  case TokenKind::KwDiv:
  case TokenKind::KwMod:
  case TokenKind::KwIf:
  case TokenKind::KwThen:
  case TokenKind::KwElse:
  case TokenKind::KwIn:
    return true;
  default:
    return false;
  }
}

namespace {

class LineBreaker {
public:
  explicit LineBreaker(Elements &elements) : elements(elements) {}

  std::vector<Line> run();

private:
  struct Bracket {
    size_t element;
    /// Where lines inside stand, and the bracket that closes where it begins a line.
    size_t column, closeColumn;
  };

  void place(Line &line);
  bool continuesStatement(const Line &line) const;
  void findEnd(Line &line) const;
  bool openLongBlocks(const Line &line);
  bool isBlankBefore(const Line &line) const;
  void enter(const Line &line);
  void trackBrackets(const Line &line);
  size_t getOperandColumn(const Line &line) const;

  Elements &elements;
  std::vector<Line> lines;
  std::vector<Bracket> open;
  size_t depth = 0;
  /// Where further lines of the present statement stand.
  size_t operandColumn = 0;
  /// The last line with tokens.
  size_t lastCode = kNoElement;
};

} // namespace

bool LineBreaker::continuesStatement(const Line &line) const {
  const Element &first = elements[line.begin];
  size_t before = first.tokenBefore;
  if (before == kNoElement || first.is(TokenKind::LeftBrace) || first.is(TokenKind::RightBrace))
    return false;
  if (first.is(TokenKind::KwThen) || first.is(TokenKind::KwElse))
    return !elements[before].is(TokenKind::RightBrace);
  return waitsForOperand(elements[before]);
}

/// Decides the indentation of a line from what is open before it.
void LineBreaker::place(Line &line) {
  const Element &first = elements[line.begin];
  line.depth = depth - (first.is(TokenKind::RightBrace) && depth != 0);
  line.indent = line.depth * kIndent;
  bool inBrackets = !open.empty() && !elements[open.back().element].is(TokenKind::LeftBrace);
  if (inBrackets)
    line.indent =
        first.partner == open.back().element ? open.back().closeColumn : open.back().column;
  else if (continuesStatement(line))
    line.indent = operandColumn;
  else
    return;
  line.isWhole = false;
  if (lastCode != kNoElement)
    lines[lastCode].isWhole = false;
}

void LineBreaker::findEnd(Line &line) const {
  line.codeEnd = line.begin;
  while (line.codeEnd != elements.size() && !elements[line.codeEnd].isComment() &&
         (line.codeEnd == line.begin || !elements[line.codeEnd].breaks))
    ++line.codeEnd;
  bool comment = line.codeEnd != elements.size() && elements[line.codeEnd].isComment() &&
                 (line.codeEnd == line.begin || !elements[line.codeEnd].breaks);
  line.end = line.codeEnd + comment;
}

/// Opens the outermost blocks of a line that is too long. Returns whether there were any.
bool LineBreaker::openLongBlocks(const Line &line) {
  if (getColumn(elements, line, line.codeEnd) <= kMaxWidth)
    return false;
  bool opened = false;
  for (size_t i = line.begin; i != line.codeEnd; ++i) {
    size_t close = elements[i].partner;
    if (!elements[i].is(TokenKind::LeftBrace) || close >= line.codeEnd || close == i + 1)
      continue;
    openBlock(elements, i);
    opened = true;
    i = close;
  }
  return opened;
}

/// Blank lines are kept, but not at the ends of blocks.
bool LineBreaker::isBlankBefore(const Line &line) const {
  if (lines.empty() || elements[line.begin].newlines < 2 ||
      elements[line.begin].is(TokenKind::RightBrace))
    return false;
  const Line &before = lines.back();
  return before.isComment() || !elements[before.codeEnd - 1].is(TokenKind::LeftBrace);
}

/// The column of what stands behind the last `=` or `->`, which further lines go on with.
size_t LineBreaker::getOperandColumn(const Line &line) const {
  for (size_t i = line.codeEnd - 1; i-- > line.begin;) {
    const Element &element = elements[i];
    if (element.is(TokenKind::Assign) || element.is(TokenKind::Arrow))
      return getColumn(elements, line, i + 1) + 1;
  }
  return line.indent + kContinuationIndent;
}

void LineBreaker::trackBrackets(const Line &line) {
  size_t column = line.indent;
  for (size_t i = line.begin; i != line.codeEnd; ++i) {
    const Element &element = elements[i];
    column += (i == line.begin ? 0 : element.spaces) + element.getWidth();
    if (element.is(TokenKind::LeftBrace) || element.is(TokenKind::LeftParen) ||
        element.is(TokenKind::LeftBracket)) {
      bool isLast = i + 1 == line.codeEnd;
      open.push_back(
          {i, isLast ? line.indent + kContinuationIndent : column, isLast ? line.indent : column});
      depth += element.is(TokenKind::LeftBrace);
    } else if (element.partner != kNoElement) {
      // What an unpaired bracket in between has opened ends here, too.
      while (open.back().element != element.partner)
        open.pop_back();
      open.pop_back();
      depth -= element.is(TokenKind::RightBrace);
    }
  }
}

void LineBreaker::enter(const Line &line) {
  if (!line.isComment()) {
    if (line.isWhole)
      operandColumn = getOperandColumn(line);
    trackBrackets(line);
    lastCode = lines.size();
  }
  lines.push_back(line);
}

std::vector<Line> LineBreaker::run() {
  for (size_t begin = 0; begin != elements.size(); begin = lines.back().end) {
    Line line;
    line.begin = begin;
    place(line);
    do
      findEnd(line);
    while (openLongBlocks(line));
    line.blankBefore = isBlankBefore(line);
    enter(line);
  }
  return std::move(lines);
}

std::vector<Line> frontend::breakLines(Elements &elements) {
  decideBreaks(elements);
  return LineBreaker(elements).run();
}
