//===- Lexer.cpp - from characters to tokens -------------------------------===//

#include "Lexer.h"

#include "Suggest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ConvertUTF.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;

static const llvm::StringMap<TokenKind> &getKeywords() {
  static const llvm::StringMap<TokenKind> keywords = {
#define KEYWORD(Name, Spelling) {Spelling, TokenKind::Kw##Name},
#include "TokenKinds.def"
  };
  return keywords;
}

/// What words of other languages are called here.
static llvm::StringRef translate(llvm::StringRef name) {
  return llvm::StringSwitch<llvm::StringRef>(name)
      .Case("forward", "fwd")
      .Case("backward", "bwd")
      .Case("backward_input", "bwd_input")
      .Case("backward_weight", "bwd_weight")
      .Cases({"func", "function", "fn"}, "def")
      .Cases({"var", "const"}, "let")
      .Cases({"loop", "while"}, "repeat")
      .Cases({"assert", "requires"}, "require")
      .Default("");
}

llvm::StringRef frontend::suggestKeyword(llvm::StringRef name) {
  if (llvm::StringRef keyword = translate(name); !keyword.empty())
    return keyword;
  Suggestion best(name);
#define KEYWORD(Name, Spelling) best.offer(Spelling);
#define CONTEXTUAL(Spelling) best.offer(Spelling);
#include "TokenKinds.def"
  return best.get();
}

std::string frontend::describe(TokenKind kind) {
  switch (kind) {
#define TOKEN(Name, Description)                                                                   \
  case TokenKind::Name:                                                                            \
    return Description;
#define PUNCTUATION(Name, Spelling)                                                                \
  case TokenKind::Name:                                                                            \
    return "'" Spelling "'";
#define KEYWORD(Name, Spelling)                                                                    \
  case TokenKind::Kw##Name:                                                                        \
    return "'" Spelling "'";
#include "TokenKinds.def"
  }
  return "a token";
}

std::string Token::describe() const {
  switch (kind) {
  case TokenKind::EndOfFile:
  case TokenKind::Error:
    return frontend::describe(kind);
  case TokenKind::String:
    return "a string";
  default:
    return "'" + spelling.str() + "'";
  }
}

//===----------------------------------------------------------------------===//
// Blanks
//===----------------------------------------------------------------------===//

void Lexer::step(size_t bytes) {
  for (const char *stop = cur + bytes; cur != stop; ++cur) {
    if (*cur != '\n') {
      ++loc.column;
      continue;
    }
    ++loc.line;
    loc.column = 1;
    startsLine = true;
  }
}

void Lexer::skipBlanks() {
  while (cur != end) {
    if (*cur == ' ' || *cur == '\t' || *cur == '\r' || *cur == '\n') {
      step(1);
    } else if (*cur == '/' && peek(1) == '/') {
      step(std::find(cur, end, '\n') - cur);
    } else {
      return;
    }
  }
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

Token Lexer::finish(TokenKind kind, size_t bytes) {
  Token token{kind, startsLine, llvm::StringRef(cur, bytes), loc};
  step(bytes);
  startsLine = false;
  return token;
}

Token Lexer::fail(size_t bytes, std::string message) {
  sink->error(loc, std::move(message));
  return finish(TokenKind::Error, bytes);
}

Token Lexer::next() {
  skipBlanks();
  if (cur == end) {
    startsLine = true;
    return finish(TokenKind::EndOfFile, 0);
  }
  if (llvm::isAlpha(*cur) || *cur == '_')
    return lexName();
  if (llvm::isDigit(*cur))
    return lexNumber();
  if (*cur == '"')
    return lexString();
  return lexPunctuation();
}

static size_t getNameLength(llvm::StringRef text) {
  return std::min(text.size(),
                  text.find_if_not([](char c) { return llvm::isAlnum(c) || c == '_'; }));
}

/// name := (letter | '_') { letter | digit | '_' }
Token Lexer::lexName() {
  size_t length = getNameLength(llvm::StringRef(cur, end - cur));
  auto keyword = getKeywords().find(llvm::StringRef(cur, length));
  return finish(keyword == getKeywords().end() ? TokenKind::Identifier : keyword->second, length);
}

/// integer := digit { digit }
/// decimal := digit { digit } '.' digit { digit }
Token Lexer::lexNumber() {
  llvm::StringRef text(cur, getNameLength(llvm::StringRef(cur, end - cur)));
  int64_t value;
  if (peek(text.size()) == '.' && llvm::isDigit(peek(text.size() + 1)))
    return lexDecimal(text.size());
  if (!llvm::all_of(text, llvm::isDigit))
    return fail(text.size(), "expected an integer, got '" + text.take_front(40).str() + "'");
  if (text.getAsInteger(10, value))
    return fail(text.size(), "integer '" + text.take_front(40).str() +
                                 "' does not fit in 64 bits; the largest is 9223372036854775807");
  return finish(TokenKind::Integer, text.size());
}

Token Lexer::lexDecimal(size_t wholeDigits) {
  llvm::StringRef rest(cur + wholeDigits + 1, end - cur - wholeDigits - 1);
  llvm::StringRef text(cur, wholeDigits + 1 + getNameLength(rest));
  auto [whole, fraction] = text.split('.');
  if (!llvm::all_of(whole, llvm::isDigit) || !llvm::all_of(fraction, llvm::isDigit))
    return fail(text.size(), "expected a number, got '" + text.take_front(40).str() + "'");
  if (whole.size() > 9 || fraction.size() > 6)
    return fail(text.size(), "decimal number '" + text.take_front(40).str() +
                                 "' has more than 9 digits before the point or 6 after it");
  return finish(TokenKind::Decimal, text.size());
}

/// string := '"' { character | '\' character } '"'      on one line
Token Lexer::lexString() {
  for (const char *at = cur + 1; at != end && *at != '\n'; ++at) {
    if (*at == '"')
      return finish(TokenKind::String, at + 1 - cur);
    if (*at == '\\' && at + 1 != end && at[1] != '\n')
      ++at;
  }
  return fail(std::find(cur, end, '\n') - cur, "string is not closed on its line; expected '\"'");
}

/// What a sign of other languages is called here, and the bytes of it.
static std::pair<llvm::StringRef, size_t> translateSign(llvm::StringRef text) {
  using Sign = std::pair<llvm::StringRef, size_t>;
  return llvm::StringSwitch<Sign>(text.take_front(2))
      .Case("&&", {"and", 2})
      .Case("||", {"or", 2})
      .StartsWith("&", {"and", 1})
      .StartsWith("|", {"or", 1})
      .StartsWith("!", {"not", 1})
      .StartsWith("%", {"mod", 1})
      .StartsWith("#", {"//", 1})
      .StartsWith("'", {"\"", 1})
      .Default({"", 0});
}

Token Lexer::lexPunctuation() {
  llvm::StringRef text(cur, end - cur);
  TokenKind kind = TokenKind::Error;
  size_t length = 0;
  // The longest match wins: `..` before `.`, `<=` before `<`.
#define PUNCTUATION(Name, Spelling)                                                                \
  if (sizeof(Spelling) - 1 > length && text.starts_with(Spelling)) {                               \
    kind = TokenKind::Name;                                                                        \
    length = sizeof(Spelling) - 1;                                                                 \
  }
#include "TokenKinds.def"
  if (length != 0)
    return finish(kind, length);
  if (auto [here, bytes] = translateSign(text); bytes != 0) {
    std::string message =
        "unexpected '" + text.take_front(bytes).str() + "'; did you mean '" + here.str() + "'?";
    // The words of a comment are no tokens.
    return fail(here == "//" ? std::min(text.find('\n'), text.size()) : bytes, message);
  }
  size_t bytes = std::min<size_t>(llvm::getNumBytesForUTF8(llvm::UTF8(*cur)), text.size());
  bool printable = (*cur & 0x80) != 0 || llvm::isPrint(*cur);
  std::string shown =
      printable ? text.take_front(bytes).str() : "\\x" + llvm::toHex(text.take_front(1), true);
  return fail(bytes, "unexpected character '" + shown + "'");
}
