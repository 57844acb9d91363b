//===- ParseExpressions.cpp - expressions ----------------------------------===//

#include "Parser.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct OperatorInfo {
  BinaryOp op;
  unsigned precedence;
};

constexpr unsigned kNotPrecedence = 3;
constexpr unsigned kComparePrecedence = 4;

} // namespace

static std::optional<OperatorInfo> getOperator(TokenKind kind) {
  switch (kind) {
  case TokenKind::KwOr:
    return OperatorInfo{BinaryOp::Or, 1};
  case TokenKind::KwAnd:
    return OperatorInfo{BinaryOp::And, 2};
  case TokenKind::Equal:
    return OperatorInfo{BinaryOp::Equal, kComparePrecedence};
  case TokenKind::NotEqual:
    return OperatorInfo{BinaryOp::NotEqual, kComparePrecedence};
  case TokenKind::Less:
    return OperatorInfo{BinaryOp::Less, kComparePrecedence};
  case TokenKind::LessEqual:
    return OperatorInfo{BinaryOp::LessEqual, kComparePrecedence};
  case TokenKind::Greater:
    return OperatorInfo{BinaryOp::Greater, kComparePrecedence};
  case TokenKind::GreaterEqual:
    return OperatorInfo{BinaryOp::GreaterEqual, kComparePrecedence};
  case TokenKind::Plus:
    return OperatorInfo{BinaryOp::Add, 5};
  case TokenKind::Minus:
    return OperatorInfo{BinaryOp::Subtract, 5};
  case TokenKind::Star:
    return OperatorInfo{BinaryOp::Multiply, 6};
  case TokenKind::Slash:
    return OperatorInfo{BinaryOp::Divide, 6};
  case TokenKind::KwDiv:
    return OperatorInfo{BinaryOp::FloorDivide, 6};
  case TokenKind::KwMod:
    return OperatorInfo{BinaryOp::Modulo, 6};
  default:
    return std::nullopt;
  }
}

/// Reports a tree that is too deep to walk; a long chain of operators is one.
Expr *Parser::checkDepth(Expr *expr) {
  if (expr->depth <= limits.maxNesting)
    return expr;
  error(expr->loc, ("expression is nested more than " + Twine(limits.maxNesting) +
                    " levels deep; name parts of it with 'let'")
                       .str());
  return nullptr;
}

/// expr := binary
Expr *Parser::parseExpr() {
  Level level(*this);
  if (level.isTooDeep())
    return nullptr;
  return parseBinary(1);
}

/// binary     := unary { operator unary }
/// operator   := 'or' | 'and' | '==' | '!=' | '<' | '<=' | '>' | '>='
///             | '+' | '-' | '*' | '/' | 'div' | 'mod'
/// From loose to tight: or, and, not, comparisons (which do not chain), + -,
/// * / div mod, unary -. All are left-associative.
Expr *Parser::parseBinary(unsigned minPrecedence) {
  Expr *lhs = parseUnary();
  while (lhs && continues()) {
    if (at(TokenKind::Assign)) {
      error(token.loc, "'=' does not compare; use '=='");
      return nullptr;
    }
    std::optional<OperatorInfo> info = getOperator(token.kind);
    if (!info || info->precedence < minPrecedence)
      return lhs;
    SourceLoc loc = token.loc;
    advance();
    Expr *rhs = parseBinary(info->precedence + 1);
    if (!rhs)
      return nullptr;
    lhs = checkDepth(create<BinaryExpr>(loc, info->op, lhs, rhs));
    std::optional<OperatorInfo> next = getOperator(token.kind);
    if (lhs && continues() && info->precedence == kComparePrecedence && next &&
        next->precedence == kComparePrecedence) {
      error(token.loc, "comparisons do not chain; join them with 'and'");
      return nullptr;
    }
  }
  return lhs;
}

/// unary := 'not' binary-above-not | '-' unary | postfix
Expr *Parser::parseUnary() {
  SourceLoc loc = token.loc;
  if (!at(TokenKind::KwNot) && !at(TokenKind::Minus))
    return parsePostfix();
  Level level(*this);
  if (level.isTooDeep())
    return nullptr;
  if (accept(TokenKind::KwNot)) {
    auto *expr = create<NotExpr>(loc);
    expr->operand = parseBinary(kNotPrecedence);
    expr->adopt(expr->operand);
    return expr->operand ? checkDepth(expr) : nullptr;
  }
  advance();
  auto *expr = create<NegateExpr>(loc);
  expr->operand = parseUnary();
  expr->adopt(expr->operand);
  return expr->operand ? checkDepth(expr) : nullptr;
}

/// postfix := primary { '[' expr ']' | '.' 'stage' '(' expr ')' }
Expr *Parser::parsePostfix() {
  Expr *base = parsePrimary();
  while (base && continues()) {
    SourceLoc loc = token.loc;
    if (accept(TokenKind::LeftBracket)) {
      auto *expr = create<IndexExpr>(loc);
      ++brackets;
      expr->base = base;
      expr->index = parseExpr();
      if (!expr->index || !at(TokenKind::RightBracket)) {
        if (expr->index)
          errorExpected("']' after the index");
        return nullptr;
      }
      --brackets;
      advance();
      expr->adopt(base);
      expr->adopt(expr->index);
      base = checkDepth(expr);
      continue;
    }
    if (!accept(TokenKind::Dot))
      return base;
    if (!at(TokenKind::Identifier) || token.spelling != "stage") {
      errorExpected("'stage' after '.'");
      return nullptr;
    }
    advance();
    auto *expr = create<StageExpr>(loc);
    llvm::ArrayRef<Expr *> arguments;
    if (!at(TokenKind::LeftParen)) {
      errorExpected("'(' after 'stage'");
      return nullptr;
    }
    if (!parseArguments(arguments))
      return nullptr;
    if (arguments.size() != 1) {
      error(loc, ("'stage' takes 1 argument, got " + Twine(arguments.size())).str());
      return nullptr;
    }
    expr->base = base;
    expr->stage = arguments.front();
    expr->adopt(base);
    expr->adopt(expr->stage);
    base = checkDepth(expr);
  }
  return base;
}

/// The lexer has checked that `text` has at most 9 and 6 digits.
static int64_t toMillionths(StringRef text) {
  auto [whole, fraction] = text.split('.');
  std::string digits = whole.str() + fraction.str();
  digits.append(6 - fraction.size(), '0');
  int64_t value = 0;
  (void)StringRef(digits).getAsInteger(10, value);
  return value;
}

/// primary := integer | decimal | 'true' | 'false' | 'training' | string | name
///          | name arguments | ('min' | 'max') arguments | if-expr | parenthesised
Expr *Parser::parsePrimary() {
  Token first = token;
  switch (token.kind) {
  case TokenKind::Integer: {
    int64_t value = 0;
    bool invalid = token.spelling.getAsInteger(10, value);
    assert(!invalid && "the lexer has checked the range");
    (void)invalid;
    advance();
    return create<IntegerExpr>(first.loc, value);
  }
  case TokenKind::Decimal:
    advance();
    return create<DecimalExpr>(first.loc, toMillionths(first.spelling));
  case TokenKind::KwTrue:
  case TokenKind::KwFalse:
    advance();
    return create<BooleanExpr>(first.loc, first.kind == TokenKind::KwTrue);
  case TokenKind::KwTraining:
    advance();
    return create<TrainingExpr>(first.loc);
  case TokenKind::String:
    return parseString();
  case TokenKind::Identifier:
    advance();
    if (at(TokenKind::LeftParen) && continues())
      return parseCall(first);
    return create<NameExpr>(first.loc, first.spelling);
  case TokenKind::KwMin:
  case TokenKind::KwMax:
    return parseMinMax();
  case TokenKind::KwIf:
    return parseIfExpr();
  case TokenKind::LeftParen:
    return parseParenthesised();
  default:
    errorExpected("an expression");
    return nullptr;
  }
}

/// if-expr := 'if' expr 'then' expr 'else' expr
Expr *Parser::parseIfExpr() {
  auto *expr = create<IfExpr>(token.loc);
  advance();
  if (!(expr->condition = parseExpr()) || !expect(TokenKind::KwThen, "after the condition") ||
      !(expr->thenValue = parseExpr()))
    return nullptr;
  if (!expect(TokenKind::KwElse, "in an 'if' that is a value"))
    return nullptr;
  if (!(expr->elseValue = parseExpr()))
    return nullptr;
  expr->adopt(expr->condition);
  expr->adopt(expr->thenValue);
  expr->adopt(expr->elseValue);
  return checkDepth(expr);
}

/// parenthesised := '(' expr ')' | '(' expr ',' expr { ',' expr } ')'
Expr *Parser::parseParenthesised() {
  SourceLoc loc = token.loc;
  llvm::ArrayRef<Expr *> elements;
  if (!parseArguments(elements))
    return nullptr;
  if (elements.empty()) {
    error(loc, "expected an expression between '(' and ')'");
    return nullptr;
  }
  if (elements.size() == 1)
    return elements.front();
  auto *tuple = create<TupleExpr>(loc);
  tuple->elements = elements;
  for (Expr *element : elements)
    tuple->adopt(element);
  return checkDepth(tuple);
}

/// arguments := '(' [ expr { ',' expr } ] ')'
bool Parser::parseArguments(llvm::ArrayRef<Expr *> &arguments) {
  SmallVector<Expr *> list;
  SourceLoc open = token.loc;
  ++brackets;
  advance();
  if (!at(TokenKind::RightParen)) {
    do {
      Expr *argument = parseExpr();
      if (!argument)
        return false;
      list.push_back(argument);
    } while (accept(TokenKind::Comma));
  }
  if (!at(TokenKind::RightParen)) {
    if (Diagnostic *diagnostic = errorExpected("',' or ')'"))
      diagnostic->note(open, "to match this '('");
    return false;
  }
  // The newline after the closing bracket counts again.
  --brackets;
  advance();
  arguments = keep<Expr *>(list);
  return true;
}

/// call := name arguments
Expr *Parser::parseCall(const Token &callee) {
  auto *call = create<CallExpr>(callee.loc);
  call->callee = callee.spelling;
  call->family = create<NameExpr>(callee.loc, callee.spelling);
  if (!parseArguments(call->arguments))
    return nullptr;
  for (Expr *argument : call->arguments)
    call->adopt(argument);
  return checkDepth(call);
}

/// min-max := ('min' | 'max') '(' expr ',' expr { ',' expr } ')'
Expr *Parser::parseMinMax() {
  auto *expr = create<MinMaxExpr>(token.loc);
  StringRef name = token.spelling;
  expr->isMax = at(TokenKind::KwMax);
  advance();
  if (!at(TokenKind::LeftParen)) {
    errorExpected(("'(' after '" + name + "'").str());
    return nullptr;
  }
  if (!parseArguments(expr->arguments))
    return nullptr;
  if (expr->arguments.size() < 2) {
    error(expr->loc,
          ("'" + name + "' takes 2 or more arguments, got " + Twine(expr->arguments.size())).str());
    return nullptr;
  }
  for (Expr *argument : expr->arguments)
    expr->adopt(argument);
  return checkDepth(expr);
}

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

/// string-text := { character | '\"' | '\\' | '{{' | '}}' | '{' expr '}' }
StringExpr *Parser::parseString() {
  auto *expr = create<StringExpr>(token.loc);
  StringRef body = token.spelling.drop_front().drop_back();
  SmallVector<StringRef> texts;
  SmallVector<Expr *> values;
  std::string text;
  auto placeOf = [&](size_t offset) {
    return SourceLoc{expr->loc.file, expr->loc.line, expr->loc.column + 1 + uint32_t(offset)};
  };
  auto closeText = [&] {
    llvm::ArrayRef<char> chars = keep<char>({text.data(), text.size()});
    texts.push_back(StringRef(chars.data(), chars.size()));
    text.clear();
  };
  for (size_t i = 0; i < body.size(); ++i) {
    char c = body[i];
    if (c == '\\') {
      char next = body[++i];
      if (next != '"' && next != '\\') {
        error(placeOf(i - 1), "unknown escape in a string; '\\\"' and '\\\\' are known");
        return nullptr;
      }
      text += next;
    } else if ((c == '{' || c == '}') && body.substr(i + 1).starts_with(StringRef(&c, 1))) {
      text += c;
      ++i;
    } else if (c == '}') {
      error(placeOf(i), "'}' without '{' in a string; write '}}' for a brace");
      return nullptr;
    } else if (c == '{') {
      size_t close = body.find('}', i);
      if (close == StringRef::npos) {
        error(placeOf(i), "'{' without '}' in a string; write '{{' for a brace");
        return nullptr;
      }
      closeText();
      Expr *value = parseInterpolated(body.slice(i + 1, close), placeOf(i + 1));
      if (!value)
        return nullptr;
      expr->adopt(value);
      values.push_back(value);
      i = close;
    } else {
      text += c;
    }
  }
  closeText();
  expr->texts = keep<StringRef>(texts);
  expr->values = keep<Expr *>(values);
  advance();
  return static_cast<StringExpr *>(checkDepth(expr));
}

/// Parses the expression between the braces of a string, then goes on with the
/// string's own token.
Expr *Parser::parseInterpolated(StringRef text, SourceLoc loc) {
  Lexer outerLexer = lexer;
  Token outerToken = token;
  unsigned outerBrackets = brackets;
  lexer = Lexer(text, loc, sink);
  brackets = 1;
  inString = true;
  advance();
  Expr *value = parseExpr();
  if (value && !at(TokenKind::EndOfFile)) {
    errorExpected("'}' after the value in the string");
    value = nullptr;
  }
  inString = false;
  lexer = outerLexer;
  token = outerToken;
  brackets = outerBrackets;
  return value;
}

/// plain-string := string without '{' expr '}'
bool Parser::expectPlainString(StringRef &text, StringRef what) {
  if (!at(TokenKind::String)) {
    errorExpected(what);
    return false;
  }
  SourceLoc loc = token.loc;
  StringExpr *string = parseString();
  if (!string)
    return false;
  if (!string->values.empty()) {
    error(loc, (what + " must not contain values in braces").str());
    return false;
  }
  text = string->texts.front();
  return true;
}
