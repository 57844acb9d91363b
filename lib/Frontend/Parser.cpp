//===- Parser.cpp - tokens, errors and recovery ----------------------------===//

#include "Parser.h"

#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;
using llvm::Twine;

Parser::Parser(llvm::BumpPtrAllocator &arena, StringRef text, uint32_t file, const Limits &limits,
               DiagnosticSink &sink)
    : arena(arena), limits(limits), sink(sink), errorsBefore(sink.numErrors()),
      lexer(text, {file, 1, 1}, sink) {
  advance();
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

void Parser::advance() {
  token = lexer.next();
  if (tooManyErrors()) {
    token.kind = TokenKind::EndOfFile;
    token.startsLine = true;
  }
}

bool Parser::accept(TokenKind kind) {
  if (!at(kind))
    return false;
  advance();
  return true;
}

bool Parser::acceptWord(StringRef word) {
  if (!atWord(word))
    return false;
  advance();
  return true;
}

bool Parser::expect(TokenKind kind, StringRef where) {
  if (accept(kind))
    return true;
  errorExpected((describe(kind) + " " + where).str());
  return false;
}

bool Parser::atStatementEnd() const {
  return at(TokenKind::Semicolon) || at(TokenKind::RightBrace) || at(TokenKind::EndOfFile) ||
         token.startsLine;
}

bool Parser::expectStatementEnd(StringRef after) {
  if (atStatementEnd()) {
    accept(TokenKind::Semicolon);
    return true;
  }
  errorExpected(("';' or a new line after " + after).str());
  return false;
}

/// Skips the rest of a statement that could not be parsed, with the blocks that
/// it opens. Brackets are not trusted: one of them may be what is missing.
void Parser::skipStatement() {
  brackets = 0;
  unsigned braces = 0;
  while (!at(TokenKind::EndOfFile)) {
    if (at(TokenKind::RightBrace) && braces-- == 0)
      return;
    if (at(TokenKind::LeftBrace))
      ++braces;
    bool ends = at(TokenKind::Semicolon);
    advance();
    if (braces == 0 && (ends || token.startsLine))
      return;
  }
}

bool Parser::expectName(Binding &binding, StringRef what) {
  if (!at(TokenKind::Identifier)) {
    bool isKeyword = token.kind >= TokenKind::KwPipe;
    if (Diagnostic *diagnostic = errorExpected(what))
      if (isKeyword)
        diagnostic->message += ", which is a keyword";
    return false;
  }
  binding.name = token.spelling;
  binding.loc = token.loc;
  advance();
  return true;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Reports an error, unless the lexer has already reported the present token.
Diagnostic *Parser::error(SourceLoc loc, std::string message) {
  if (at(TokenKind::Error) || tooManyErrors())
    return nullptr;
  return &sink.error(loc, std::move(message));
}

Diagnostic *Parser::errorExpected(StringRef expected) {
  std::string got = inString && at(TokenKind::EndOfFile) ? "'}'" : token.describe();
  return error(token.loc, ("expected " + expected + ", got " + got).str());
}

bool Parser::Level::isTooDeep() {
  if (parser.nesting <= parser.limits.maxNesting)
    return false;
  parser.error(parser.token.loc,
               ("nested more than " + Twine(parser.limits.maxNesting) + " levels deep").str());
  return true;
}
