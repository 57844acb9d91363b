//===- Lexer.h - from characters to tokens ---------------------------------===//
//
// Newlines are not tokens: a token knows whether it is the first on its line,
// and the parser decides where that ends a statement.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_LEXER_H
#define DUALPIPE_LIB_FRONTEND_LEXER_H

#include "dualpipe/Support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace dualpipe::frontend {

enum class TokenKind : uint8_t {
#define TOKEN(Name, Description) Name,
#define PUNCTUATION(Name, Spelling) Name,
#define KEYWORD(Name, Spelling) Kw##Name,
#include "TokenKinds.def"
};

/// How a kind of token is named in a message: `'{'`, `a name`.
std::string describe(TokenKind kind);
/// The keyword that is nearest in spelling to `name`, or an empty string.
llvm::StringRef suggestKeyword(llvm::StringRef name);

struct Token {
  TokenKind kind = TokenKind::EndOfFile;
  /// First on its line.
  bool startsLine = true;
  /// The characters of the token, with the quotes of a string.
  llvm::StringRef spelling;
  SourceLoc loc;

  /// How this token is named in a message: `'x'`, `end of file`.
  std::string describe() const;
};

/// Splits `text` into tokens. A token that cannot be read is reported and
/// returned as `Error`, on which the parser is silent.
class Lexer {
public:
  /// `loc` is the place of the first character.
  Lexer(llvm::StringRef text, SourceLoc loc, DiagnosticSink &sink)
      : cur(text.begin()), end(text.end()), loc(loc), sink(&sink) {}

  Token next();

private:
  void skipBlanks();
  void step(size_t bytes);
  Token finish(TokenKind kind, size_t bytes);
  Token fail(size_t bytes, std::string message);
  Token lexName();
  Token lexNumber();
  Token lexDecimal(size_t wholeDigits);
  Token lexString();
  Token lexPunctuation();
  char peek(size_t ahead) const { return size_t(end - cur) > ahead ? cur[ahead] : '\0'; }

  const char *cur;
  const char *end;
  SourceLoc loc;
  bool startsLine = true;
  DiagnosticSink *sink;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_LEXER_H
