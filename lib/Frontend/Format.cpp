//===- Format.cpp - elements, blanks and printing --------------------------===//

#include "dualpipe/Frontend/Format.h"
#include "FormatLines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;
using llvm::Twine;

/// Characters, which are the bytes that do not continue one of UTF-8.
static size_t countCharacters(StringRef text) {
  return llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

size_t Element::getWidth() const { return countCharacters(text); }

size_t frontend::getColumn(const Elements &elements, const Line &line, size_t end) {
  size_t column = line.indent;
  for (size_t i = line.begin; i != end; ++i)
    column += (i == line.begin ? 0 : elements[i].spaces) + elements[i].getWidth();
  return column;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

class ElementReader {
public:
  ElementReader(StringRef text, DiagnosticSink &sink, const Limits &limits)
      : text(text), sink(sink), limits(limits), errorsBefore(sink.numErrors()) {}

  llvm::FailureOr<Elements> read();

private:
  void addComments(StringRef gap);
  void add(TokenKind kind, StringRef spelling);
  bool pairBracket(const Token &token);
  void closeBrace();
  void close(TokenKind open);

  StringRef text;
  DiagnosticSink &sink;
  const Limits &limits;
  size_t errorsBefore;
  Elements elements;
  unsigned newlines = 0;
  /// Brackets that are open, and how many of them are braces.
  std::vector<size_t> open;
  unsigned openBraces = 0;
};

} // namespace

void ElementReader::add(TokenKind kind, StringRef spelling) {
  StringRef before = text.take_front(spelling.begin() - text.begin());
  Element element;
  element.kind = kind;
  element.text = spelling;
  element.newlines = newlines;
  if (!elements.empty())
    element.tokenBefore =
        elements.back().isComment() ? elements.back().tokenBefore : elements.size() - 1;
  // Only comments are asked for it, and a line has one at most.
  if (kind == TokenKind::EndOfFile)
    element.sourceColumn = countCharacters(before.drop_front(before.rfind('\n') + 1));
  elements.push_back(element);
  newlines = 0;
}

/// Reads what stands between two tokens.
void ElementReader::addComments(StringRef gap) {
  while (!gap.empty()) {
    if (gap.starts_with("//")) {
      StringRef comment = gap.take_until([](char c) { return c == '\n'; });
      gap = gap.drop_front(comment.size());
      add(TokenKind::EndOfFile, comment.rtrim());
      continue;
    }
    if (gap.front() == '\n')
      newlines = std::min(newlines + 1, 2u);
    gap = gap.drop_front();
  }
}

/// A `}` closes the last `{`, whatever else is open in between.
void ElementReader::closeBrace() {
  if (openBraces == 0)
    return;
  while (!elements[open.back()].is(TokenKind::LeftBrace))
    open.pop_back();
  close(TokenKind::LeftBrace);
  --openBraces;
}

void ElementReader::close(TokenKind kind) {
  if (open.empty() || !elements[open.back()].is(kind))
    return;
  elements[open.back()].partner = elements.size() - 1;
  elements.back().partner = open.back();
  open.pop_back();
}

bool ElementReader::pairBracket(const Token &token) {
  switch (token.kind) {
  case TokenKind::LeftBrace:
    ++openBraces;
    [[fallthrough]];
  case TokenKind::LeftParen:
  case TokenKind::LeftBracket:
    open.push_back(elements.size() - 1);
    break;
  case TokenKind::RightBrace:
    closeBrace();
    break;
  case TokenKind::RightParen:
    close(TokenKind::LeftParen);
    break;
  case TokenKind::RightBracket:
    close(TokenKind::LeftBracket);
    break;
  default:
    break;
  }
  if (openBraces <= limits.maxNesting)
    return true;
  sink.error(token.loc, ("nested more than " + Twine(limits.maxNesting) + " levels deep").str());
  return false;
}

llvm::FailureOr<Elements> ElementReader::read() {
  Lexer lexer(text, {0, 1, 1}, sink);
  const char *end = text.begin();
  while (sink.numErrors() - errorsBefore < limits.maxErrors) {
    Token token = lexer.next();
    addComments(StringRef(end, token.spelling.begin() - end));
    end = token.spelling.end();
    if (token.kind == TokenKind::EndOfFile)
      break;
    add(token.kind, token.spelling);
    if (!pairBracket(token))
      break;
  }
  if (sink.numErrors() != errorsBefore)
    return llvm::failure();
  return std::move(elements);
}

llvm::FailureOr<Elements> frontend::readElements(StringRef text, DiagnosticSink &sink,
                                                 const Limits &limits) {
  return ElementReader(text, sink, limits).read();
}

//===----------------------------------------------------------------------===//
// Blanks
//===----------------------------------------------------------------------===//

/// Whether two tokens would be read as others without a blank between them.
static bool mustSeparate(StringRef left, StringRef right) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (isWord(left.back()) && isWord(right.front()))
    return true;
  if ((llvm::isDigit(left.back()) && right == ".") || (left == "." && llvm::isDigit(right.front())))
    return true;
  std::string both = (left + right).str();
  if (StringRef(both).starts_with("//"))
    return true;
#define PUNCTUATION(Name, Spelling)                                                                \
  if (sizeof(Spelling) - 1 > left.size() && StringRef(both).starts_with(Spelling))                 \
    return true;
#include "TokenKinds.def"
  return false;
}

/// Words that are names to the lexer, and wait for an operand in the places where they are not.
static bool isPreposition(const Element &element) {
  return element.is(TokenKind::Identifier) &&
         (element.text == "at" || element.text == "of" || element.text == "on");
}

/// Whether a value can end here, so that `-` after it is a subtraction.
static bool endsValue(const Element &element) {
  switch (element.kind) {
  case TokenKind::Identifier:
    return !isPreposition(element);
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
  case TokenKind::Integer:
  case TokenKind::String:
  case TokenKind::KwTrue:
  case TokenKind::KwFalse:
  case TokenKind::KwTraining:
    return true;
  default:
    return llvm::isDigit(element.text.front());
  }
}

static bool isSign(const Elements &elements, size_t i) {
  if (!elements[i].is(TokenKind::Minus))
    return false;
  size_t before = elements[i].tokenBefore;
  return before == kNoElement || !endsValue(elements[before]);
}

/// Whether brackets behind `element` are its arguments.
static bool takesArguments(const Element &element) {
  switch (element.kind) {
  case TokenKind::Identifier:
    return !isPreposition(element);
  case TokenKind::KwMin:
  case TokenKind::KwMax:
  case TokenKind::KwFused:
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
    return true;
  default:
    return false;
  }
}

/// Whether no blank is wanted between element `i` and the one before it.
static bool isClose(const Elements &elements, size_t i) {
  const Element &left = elements[i - 1], &right = elements[i];
  switch (right.kind) {
  case TokenKind::Comma:
  case TokenKind::Semicolon:
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
  case TokenKind::Dot:
  case TokenKind::DotDot:
    return true;
  case TokenKind::LeftParen:
    if (takesArguments(left))
      return true;
    break;
  case TokenKind::LeftBracket:
    if (endsValue(left) && !left.is(TokenKind::Integer))
      return true;
    break;
  case TokenKind::RightBrace:
    return left.is(TokenKind::LeftBrace);
  default:
    if (right.text == ":")
      return true;
    break;
  }
  return left.is(TokenKind::LeftParen) || left.is(TokenKind::LeftBracket) ||
         left.is(TokenKind::Dot) || left.is(TokenKind::DotDot) || isSign(elements, i - 1);
}

void frontend::setSpaces(Elements &elements) {
  for (size_t i = 1; i < elements.size(); ++i) {
    Element &right = elements[i];
    const Element &left = elements[i - 1];
    bool close = !right.isComment() && !left.isComment() && isClose(elements, i) &&
                 !mustSeparate(left.text, right.text);
    right.spaces = close ? 0 : 1;
  }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static std::string print(const Elements &elements, const std::vector<Line> &lines) {
  std::string out;
  for (const Line &line : lines) {
    if (line.blankBefore)
      out += '\n';
    out.append(line.indent, ' ');
    for (size_t i = line.begin; i != line.end; ++i) {
      if (i != line.begin)
        out.append(elements[i].spaces, ' ');
      out += elements[i].text;
    }
    out += '\n';
  }
  return out;
}

llvm::FailureOr<std::string> frontend::formatText(StringRef text, DiagnosticSink &sink,
                                                  const Limits &limits) {
  if (text.size() > limits.maxFileBytes) {
    sink.error({0, 1, 1}, ("the text has " + Twine(text.size()) +
                           " bytes, more than the limit of " + Twine(limits.maxFileBytes))
                              .str());
    return llvm::failure();
  }
  StringRef mark = "\xEF\xBB\xBF";
  std::string out = text.consume_front(mark) ? mark.str() : "";
  llvm::FailureOr<Elements> elements = readElements(text, sink, limits);
  if (llvm::failed(elements))
    return llvm::failure();
  setSpaces(*elements);
  std::vector<Line> lines = breakLines(*elements);
  alignColumns(*elements, lines);
  return out + print(*elements, lines);
}
