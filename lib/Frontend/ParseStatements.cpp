//===- ParseStatements.cpp - the statements of rank programs ---------------===//

#include "Parser.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::SmallVector;
using llvm::StringRef;

/// block := '{' { statement end | ';' } '}'
/// An error inside costs the statement, not the block.
bool Parser::parseBlock(Block &block) {
  SourceLoc open = token.loc;
  if (!at(TokenKind::LeftBrace)) {
    errorExpected("'{'");
    return false;
  }
  Level level(*this);
  if (level.isTooDeep())
    return false;
  advance();
  SmallVector<Stmt *> statements;
  while (!at(TokenKind::RightBrace) && !at(TokenKind::EndOfFile)) {
    if (accept(TokenKind::Semicolon))
      continue;
    const char *before = token.spelling.data();
    if (Stmt *statement = parseStatement()) {
      statements.push_back(statement);
      block.depth = std::max(block.depth, statement->depth);
      if (expectStatementEnd("the statement"))
        continue;
    }
    // A statement that failed at the first token of the next leaves it there.
    if (token.spelling.data() == before || !atStatementEnd())
      skipStatement();
    brackets = 0;
  }
  block.statements = keep<Stmt *>(statements);
  if (accept(TokenKind::RightBrace))
    return true;
  if (Diagnostic *diagnostic = errorExpected("'}'"))
    diagnostic->note(open, "to match this '{'");
  return false;
}

bool Parser::parseBlockInto(Stmt &stmt, Block &block) {
  if (!parseBlock(block))
    return false;
  stmt.depth = std::max(stmt.depth, block.depth + 1);
  return true;
}

/// statement := let | if | repeat | for | every | phase | op | fused | transfer | call
Stmt *Parser::parseStatement() {
  switch (token.kind) {
  case TokenKind::KwLet:
    return parseLet();
  case TokenKind::KwIf:
    return parseIf();
  case TokenKind::KwRepeat:
    return parseRepeat();
  case TokenKind::KwFor:
    return parseFor();
  case TokenKind::KwEvery:
    return parseEvery();
  case TokenKind::KwPhase:
    return parsePhase();
  case TokenKind::KwForward:
    return parseOp(OpKind::Forward);
  case TokenKind::KwBackward:
    return parseOp(OpKind::Backward);
  case TokenKind::KwBackwardInput:
    return parseOp(OpKind::BackwardInput);
  case TokenKind::KwBackwardWeight:
    return parseOp(OpKind::BackwardWeight);
  case TokenKind::KwFused:
    return parseFused();
  case TokenKind::KwSend:
  case TokenKind::KwRecv:
    return parseTransfer();
  case TokenKind::Identifier:
    return parseCallStatement();
  default:
    errorExpected("a statement");
    return nullptr;
  }
}

/// let := 'let' ( name | '(' name ',' name { ',' name } ')' ) '=' expr
LetStmt *Parser::parseLet() {
  auto *let = create<LetStmt>(token.loc);
  advance();
  SmallVector<Binding> bindings;
  Binding binding;
  if (accept(TokenKind::LeftParen)) {
    let->isTuple = true;
    ++brackets;
    do {
      if (!expectName(binding, "a name"))
        return nullptr;
      bindings.push_back(binding);
    } while (accept(TokenKind::Comma));
    if (!expect(TokenKind::RightParen, "after the names"))
      return nullptr;
    --brackets;
    if (bindings.size() < 2) {
      error(let->loc, "expected 2 or more names in brackets, got 1");
      return nullptr;
    }
  } else {
    if (!expectName(binding, "a name after 'let'"))
      return nullptr;
    bindings.push_back(binding);
  }
  if (!expect(TokenKind::Assign, "after the name") || !(let->value = parseExpr()))
    return nullptr;
  let->bindings = keep<Binding>(bindings);
  let->adopt(let->value);
  return let;
}

/// if := 'if' expr block [ 'else' ( if | block ) ]
Stmt *Parser::parseIf() {
  Level level(*this);
  if (level.isTooDeep())
    return nullptr;
  auto *stmt = create<IfStmt>(token.loc);
  advance();
  if (!(stmt->condition = parseExpr()))
    return nullptr;
  stmt->adopt(stmt->condition);
  if (at(TokenKind::KwThen)) {
    error(token.loc, "expected '{' after the condition, got 'then'; "
                     "'if … then … else' is a value, not a statement");
    return nullptr;
  }
  if (!parseBlockInto(*stmt, stmt->thenBlock))
    return nullptr;
  if (!accept(TokenKind::KwElse))
    return stmt;
  if (!at(TokenKind::KwIf))
    return parseBlockInto(*stmt, stmt->elseBlock) ? stmt : nullptr;
  Stmt *nested = parseIf();
  if (!nested)
    return nullptr;
  stmt->elseBlock.statements = keep<Stmt *>(nested);
  stmt->elseBlock.depth = nested->depth;
  stmt->depth = std::max(stmt->depth, nested->depth + 1);
  return stmt;
}

/// repeat := 'repeat' expr [ 'as' name ] block
Stmt *Parser::parseRepeat() {
  auto *stmt = create<RepeatStmt>(token.loc);
  advance();
  if (!(stmt->count = parseExpr()))
    return nullptr;
  stmt->adopt(stmt->count);
  if (accept(TokenKind::KwAs) && !expectName(stmt->counter, "a name after 'as'"))
    return nullptr;
  return parseBlockInto(*stmt, stmt->body) ? stmt : nullptr;
}

/// for := 'for' name 'in' expr '..' expr block
Stmt *Parser::parseFor() {
  auto *stmt = create<ForStmt>(token.loc);
  advance();
  if (!expectName(stmt->counter, "a name after 'for'") ||
      !expect(TokenKind::KwIn, "after the name") || !(stmt->begin = parseExpr()) ||
      !expect(TokenKind::DotDot, "after the first value") || !(stmt->end = parseExpr()))
    return nullptr;
  stmt->adopt(stmt->begin);
  stmt->adopt(stmt->end);
  return parseBlockInto(*stmt, stmt->body) ? stmt : nullptr;
}

/// every := 'every' expr 'as' name [ 'in' expr '..' expr ] block
Stmt *Parser::parseEvery() {
  auto *stmt = create<EveryStmt>(token.loc);
  advance();
  if (!(stmt->period = parseExpr()) || !expect(TokenKind::KwAs, "after the period") ||
      !expectName(stmt->counter, "a name after 'as'"))
    return nullptr;
  if (accept(TokenKind::KwIn) &&
      (!(stmt->begin = parseExpr()) || !expect(TokenKind::DotDot, "after the first value") ||
       !(stmt->end = parseExpr())))
    return nullptr;
  stmt->adopt(stmt->period);
  stmt->adopt(stmt->begin);
  stmt->adopt(stmt->end);
  return parseBlockInto(*stmt, stmt->body) ? stmt : nullptr;
}

/// phase := 'phase' plain-string block
Stmt *Parser::parsePhase() {
  auto *stmt = create<PhaseStmt>(token.loc);
  advance();
  if (!expectPlainString(stmt->name, "the name of a phase"))
    return nullptr;
  return parseBlockInto(*stmt, stmt->body) ? stmt : nullptr;
}

/// op := ( 'fwd' | 'bwd_input' ) expr [ '@' expr ] [ time ]
///     | 'bwd' expr [ '@' expr ] [ 'split' '(' expr ')' ] [ time ]
///     | 'bwd_weight' [ expr [ '@' expr ] [ time ] ]
Stmt *Parser::parseOp(OpKind kind) {
  auto *stmt = create<OpStmt>(token.loc);
  stmt->op = kind;
  std::string keyword = token.spelling.str();
  advance();
  if (kind == OpKind::BackwardWeight && atStatementEnd())
    return stmt;
  if (atStatementEnd()) {
    errorExpected("a pipeline or chunk after '" + keyword + "'");
    return nullptr;
  }
  if (!(stmt->chunk = parseExpr()))
    return nullptr;
  if (continues() && accept(TokenKind::At) && !(stmt->microbatch = parseExpr()))
    return nullptr;
  if (continues() && at(TokenKind::KwSplit)) {
    if (kind != OpKind::Backward) {
      error(token.loc, "only 'bwd' can be split, not '" + keyword + "'");
      return nullptr;
    }
    advance();
    if (!at(TokenKind::LeftParen)) {
      errorExpected("'(' after 'split'");
      return nullptr;
    }
    if (!(stmt->split = parseParenthesised()))
      return nullptr;
  }
  stmt->adopt(stmt->chunk);
  stmt->adopt(stmt->microbatch);
  if (!parseOpTime(*stmt))
    return nullptr;
  stmt->adopt(stmt->split);
  stmt->adopt(stmt->time);
  return stmt;
}

/// time := 'at' expr | 'in' 'gaps'
bool Parser::parseOpTime(OpStmt &op) {
  if (!continues())
    return true;
  if (acceptWord("at"))
    return (op.time = parseExpr()) != nullptr;
  SourceLoc loc = token.loc;
  if (!accept(TokenKind::KwIn))
    return true;
  if (!acceptWord("gaps")) {
    errorExpected("'gaps' after 'in'");
    return false;
  }
  op.inGaps = true;
  if (op.op == OpKind::BackwardWeight)
    return true;
  error(loc, "only 'bwd_weight' can go in gaps: nothing waits for it");
  return false;
}

/// fused := 'fused' block [ 'at' expr ]
Stmt *Parser::parseFused() {
  auto *stmt = create<FusedStmt>(token.loc);
  advance();
  if (!parseBlockInto(*stmt, stmt->body))
    return nullptr;
  if (continues() && acceptWord("at") && !(stmt->time = parseExpr()))
    return nullptr;
  stmt->adopt(stmt->time);
  return stmt;
}

/// transfer := ( 'send' | 'recv' ) ( 'fwd' | 'bwd' ) expr [ '@' expr ]
Stmt *Parser::parseTransfer() {
  auto *stmt = create<TransferStmt>(token.loc);
  std::string keyword = token.spelling.str();
  stmt->isSend = at(TokenKind::KwSend);
  advance();
  stmt->isGrad = at(TokenKind::KwBackward);
  if (!accept(TokenKind::KwForward) && !accept(TokenKind::KwBackward)) {
    errorExpected("'fwd' or 'bwd' after '" + keyword + "'");
    return nullptr;
  }
  if (atStatementEnd()) {
    errorExpected("a pipeline or chunk after '" + keyword + (stmt->isGrad ? " bwd'" : " fwd'"));
    return nullptr;
  }
  if (!(stmt->chunk = parseExpr()))
    return nullptr;
  if (continues() && accept(TokenKind::At) && !(stmt->microbatch = parseExpr()))
    return nullptr;
  stmt->adopt(stmt->chunk);
  stmt->adopt(stmt->microbatch);
  return stmt;
}

/// call-statement := name arguments
Stmt *Parser::parseCallStatement() {
  auto *stmt = create<CallStmt>(token.loc);
  Token name = token;
  stmt->callee = name.spelling;
  advance();
  if (at(TokenKind::Assign) && continues()) {
    error(token.loc, "there is no assignment; a 'let' gives a new name a value");
    return nullptr;
  }
  if (!at(TokenKind::LeftParen) || !continues()) {
    llvm::StringRef keyword = suggestKeyword(name.spelling);
    error(name.loc, "expected a statement, got '" + name.spelling.str() + "'" +
                        (keyword.empty() ? "" : "; did you mean '" + keyword.str() + "'?"));
    return nullptr;
  }
  if (!parseArguments(stmt->arguments))
    return nullptr;
  for (Expr *argument : stmt->arguments)
    stmt->adopt(argument);
  return stmt;
}
