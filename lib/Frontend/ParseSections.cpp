//===- ParseSections.cpp - plans and the sections of an order --------------===//

#include "Parser.h"
#include "Suggest.h"

#include "dualpipe/Schedule/ModelContract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::SmallVector;
using llvm::StringRef;

/// lines := '{' { line end | ';' } '}'
/// An error inside costs the line, not what follows.
template <typename Parse> bool Parser::parseLines(StringRef what, Parse parseLine) {
  SourceLoc open = token.loc;
  if (!expect(TokenKind::LeftBrace, ("after '" + what + "'").str()))
    return false;
  bool complete = true;
  while (!at(TokenKind::RightBrace) && !at(TokenKind::EndOfFile)) {
    if (accept(TokenKind::Semicolon))
      continue;
    const char *before = token.spelling.data();
    if (parseLine() && expectStatementEnd("the line"))
      continue;
    complete = false;
    if (token.spelling.data() == before || !atStatementEnd())
      skipStatement();
    brackets = 0;
  }
  if (accept(TokenKind::RightBrace))
    return complete;
  if (Diagnostic *diagnostic = errorExpected("'}'"))
    diagnostic->note(open, "to match this '{'");
  return false;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Items that begin with a contextual word.
Item *Parser::parsePlan() {
  if (atWord("cost"))
    return parseCost();
  if (atWord("memory"))
    return parseMemory();
  if (atWord("model"))
    return parseModel();
  StringRef keyword = suggestKeyword(token.spelling);
  error(token.loc, "expected a declaration of a schedule, got " + token.describe() +
                       (keyword.empty() ? "" : "; did you mean '" + keyword.str() + "'?"));
  return nullptr;
}

/// Adds which of `words` the present token may have meant to be.
void Parser::suggestWord(Diagnostic &diagnostic, llvm::ArrayRef<StringRef> words) const {
  Suggestion suggestion(token.spelling);
  for (StringRef word : words)
    suggestion.offer(word);
  diagnostic.message += suggestion.getHint();
}

/// map-clause := name ( expr | name '->' expr )
bool Parser::parseMapClause(llvm::MutableArrayRef<MapClause> &clauses,
                            llvm::ArrayRef<StringRef> names, StringRef where) {
  MapClause clause;
  clause.name = token.spelling;
  clause.loc = token.loc;
  if (!llvm::is_contained(names, clause.name)) {
    if (Diagnostic *diagnostic =
            errorExpected(("one of '" + llvm::join(names, "', '") + "' in '" + where + "'").str()))
      suggestWord(*diagnostic, names);
    return false;
  }
  for (const MapClause &other : clauses) {
    if (other.name != clause.name)
      continue;
    if (Diagnostic *diagnostic =
            error(clause.loc, ("'" + clause.name + "' stands twice in '" + where + "'").str()))
      diagnostic->note(other.loc, "the first is here");
    return false;
  }
  advance();
  if (!(clause.value = parseExpr()))
    return false;
  if (continues() && at(TokenKind::Arrow)) {
    auto *index = llvm::dyn_cast<NameExpr>(clause.value);
    if (!index) {
      error(clause.value->loc, "expected a name before '->'");
      return false;
    }
    clause.index = {index->name, index->loc};
    advance();
    if (!(clause.value = parseExpr()))
      return false;
  }
  SmallVector<MapClause> all(clauses);
  all.push_back(clause);
  clauses = keep<MapClause>(all);
  return true;
}

/// cost := 'cost' '{' { map-clause end } '}'
Item *Parser::parseCost() {
  static constexpr StringRef names[] = {"fwd",        "bwd",   "bwd_input",
                                        "bwd_weight", "fused", "transfer"};
  auto *item = create<CostItem>(token.loc);
  advance();
  auto parseLine = [&] { return parseMapClause(item->clauses, names, "cost"); };
  return parseLines("cost", parseLine) ? item : nullptr;
}

/// memory := 'memory' '{' { map-clause end } '}'
Item *Parser::parseMemory() {
  static constexpr StringRef names[] = {"activation", "context", "limit"};
  auto *item = create<MemoryItem>(token.loc);
  advance();
  auto parseLine = [&] { return parseMapClause(item->clauses, names, "memory"); };
  return parseLines("memory", parseLine) ? item : nullptr;
}

/// model := 'model' '{' { ( 'group' map | half 'reads' tensor { ',' tensor } ) end } '}'
Item *Parser::parseModel() {
  static constexpr StringRef names[] = {"group"};
  auto *item = create<ModelItem>(token.loc);
  advance();
  auto parseLine = [&] {
    return atWord("group") ? parseMapClause(item->groups, names, "model") : parseReads(*item);
  };
  return parseLines("model", parseLine) ? item : nullptr;
}

/// half := 'bwd' | 'bwd_input' | 'bwd_weight'
bool Parser::parseReads(ModelItem &model) {
  ReadsClause clause;
  clause.loc = token.loc;
  bool isHalf = at(TokenKind::KwBackward) || at(TokenKind::KwBackwardInput) ||
                at(TokenKind::KwBackwardWeight);
  if (!isHalf) {
    errorExpected("'group', 'bwd', 'bwd_input' or 'bwd_weight' in 'model'");
    return false;
  }
  parseOpKind(clause.half);
  std::string half = std::string("'") + getKeyword(clause.half) + "'";
  for (const ReadsClause &other : model.halves) {
    if (other.half != clause.half)
      continue;
    if (Diagnostic *diagnostic = error(clause.loc, half + " stands twice in 'model'"))
      diagnostic->note(other.loc, "the first is here");
    return false;
  }
  if (!continues() || !acceptWord("reads")) {
    errorExpected("'reads' after " + half);
    return false;
  }
  do
    if (!parseTensor(clause))
      return false;
  while (continues() && accept(TokenKind::Comma));
  SmallVector<ReadsClause> all(model.halves);
  all.push_back(clause);
  model.halves = keep<ReadsClause>(all);
  std::string fault = findReadsFault(clause.half, clause.reads);
  if (fault.empty())
    return true;
  error(clause.loc, fault);
  return false;
}

/// tensor := 'input' | 'output' | 'saved' | 'grad_output' | 'labels' | 'context'
bool Parser::parseTensor(ReadsClause &clause) {
  std::optional<program::SlotKind> kind;
  if (at(TokenKind::Identifier))
    kind = findReadable(clause.half, token.spelling);
  if (!kind) {
    errorExpected("one of " + spellReads(getReadable(clause.half)) + " as what '" +
                  getKeyword(clause.half) + "' reads");
    return false;
  }
  if (clause.reads & program::bit(*kind)) {
    error(token.loc, "'" + token.spelling.str() + "' stands twice");
    return false;
  }
  clause.reads |= program::bit(*kind);
  advance();
  return true;
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

/// rank := 'rank' name block
Item *Parser::parseRank() {
  auto *item = create<RankItem>(token.loc);
  advance();
  if (!expectName(item->rank, "a name for the rank after 'rank'") || !parseBlock(item->body))
    return nullptr;
  return item;
}

/// timeline := 'timeline' block
Item *Parser::parseTimeline() {
  auto *item = create<TimelineItem>(token.loc);
  advance();
  return parseBlock(item->body) ? item : nullptr;
}

static bool prefers(const GreedyClause &clause) {
  return clause.kind == GreedyClause::Kind::Prefer || llvm::any_of(clause.lines, prefers);
}

/// greedy := 'greedy' '{' { greedy-clause end } '}'
Item *Parser::parseGreedy() {
  auto *item = create<GreedyItem>(token.loc);
  advance();
  SmallVector<GreedyClause> clauses;
  auto parseLine = [&] { return parseGreedyClause(clauses.emplace_back()); };
  if (!parseLines("greedy", parseLine))
    return nullptr;
  item->clauses = keep<GreedyClause>(clauses);
  if (llvm::any_of(clauses, prefers))
    return item;
  error(item->loc, "'greedy' has no 'prefer', so no rank would do anything");
  return nullptr;
}

/// greedy-for := 'for' name 'in' expr '..' expr '{' { greedy-clause end } '}'
bool Parser::parseGreedyFor(GreedyClause &clause) {
  Level level(*this);
  if (level.isTooDeep())
    return false;
  clause.kind = GreedyClause::Kind::For;
  advance();
  if (!expectName(clause.counter, "a name after 'for'") ||
      !expect(TokenKind::KwIn, "after the name") || !(clause.begin = parseExpr()) ||
      !expect(TokenKind::DotDot, "after the first value") || !(clause.end = parseExpr()))
    return false;
  SmallVector<GreedyClause> lines;
  auto parseLine = [&] { return parseGreedyClause(lines.emplace_back()); };
  if (!parseLines("for", parseLine))
    return false;
  clause.lines = keep<GreedyClause>(lines);
  return true;
}

/// greedy-clause := prefer | limit | until | greedy-for
/// limit         := 'limit' kind '..' kind [ chunks ] [ on ] '<=' expr
/// until         := 'until' kind [ chunks ] [ on ] '>=' expr
bool Parser::parseGreedyClause(GreedyClause &clause) {
  clause.loc = token.loc;
  if (atWord("prefer"))
    return parsePrefer(clause);
  if (at(TokenKind::KwFor))
    return parseGreedyFor(clause);
  bool isLimit = atWord("limit");
  if (!isLimit && !atWord("until")) {
    if (Diagnostic *diagnostic = errorExpected("'prefer', 'limit' or 'until'"))
      suggestWord(*diagnostic, {"prefer", "limit", "until"});
    return false;
  }
  clause.kind = isLimit ? GreedyClause::Kind::Limit : GreedyClause::Kind::Until;
  advance();
  clause.op.loc = token.loc;
  if (!parseOpKind(clause.op.op))
    return false;
  if (isLimit && (!expect(TokenKind::DotDot, "after the first op") || !parseOpKind(clause.last)))
    return false;
  if (!parseChunks(clause.op) || !parseOnRank(clause))
    return false;
  TokenKind relation = isLimit ? TokenKind::LessEqual : TokenKind::GreaterEqual;
  if (!expect(relation, isLimit ? "before the most in flight" : "before the count") ||
      !(clause.bound = parseExpr()))
    return false;
  if (!continues() || !atWord("on"))
    return true;
  error(token.loc, "'on' stands before '" + std::string(isLimit ? "<=" : ">=") +
                       "', as in 'limit fwd..bwd on r <= P - r'");
  return false;
}

/// prefer := 'prefer' choice { ',' choice } [ on ]
bool Parser::parsePrefer(GreedyClause &clause) {
  clause.kind = GreedyClause::Kind::Prefer;
  advance();
  SmallVector<ChoicePattern> choices;
  do {
    if (!parseChoice(choices.emplace_back()))
      return false;
  } while (continues() && accept(TokenKind::Comma));
  clause.choices = keep<ChoicePattern>(choices);
  return parseOnRank(clause);
}

/// choice := pattern | 'fused' '(' pattern ',' pattern { ',' pattern } ')'
bool Parser::parseChoice(ChoicePattern &choice) {
  choice.loc = token.loc;
  SmallVector<OpPattern, 2> members;
  if (!accept(TokenKind::KwFused)) {
    if (!parseOpPattern(members.emplace_back()))
      return false;
    choice.members = keep<OpPattern>(members);
    return true;
  }
  if (!expect(TokenKind::LeftParen, "after 'fused'"))
    return false;
  ++brackets;
  do {
    if (!parseOpPattern(members.emplace_back()))
      return false;
  } while (accept(TokenKind::Comma));
  if (!at(TokenKind::RightParen)) {
    errorExpected("',' or ')' in 'fused'");
    return false;
  }
  --brackets;
  advance();
  choice.members = keep<OpPattern>(members);
  if (members.size() >= 2 && members.size() <= limits.maxFusedOps)
    return true;
  error(choice.loc, "'fused' takes 2 to " + std::to_string(limits.maxFusedOps) + " ops, got " +
                        std::to_string(members.size()));
  return false;
}

/// pattern := kind [ chunks ]
bool Parser::parseOpPattern(OpPattern &pattern) {
  pattern.loc = token.loc;
  return parseOpKind(pattern.op) && parseChunks(pattern);
}

/// kind := 'fwd' | 'bwd' | 'bwd_input' | 'bwd_weight'
bool Parser::parseOpKind(OpKind &kind) {
  switch (token.kind) {
  case TokenKind::KwForward:
    kind = OpKind::Forward;
    break;
  case TokenKind::KwBackward:
    kind = OpKind::Backward;
    break;
  case TokenKind::KwBackwardInput:
    kind = OpKind::BackwardInput;
    break;
  case TokenKind::KwBackwardWeight:
    kind = OpKind::BackwardWeight;
    break;
  default:
    errorExpected("'fwd', 'bwd', 'bwd_input' or 'bwd_weight'");
    return false;
  }
  advance();
  return true;
}

/// chunks := 'of' postfix { '+' postfix }
bool Parser::parseChunks(OpPattern &pattern) {
  if (!continues() || !acceptWord("of"))
    return true;
  SmallVector<Expr *> chunks;
  do {
    Expr *chunk = parsePostfix();
    if (!chunk)
      return false;
    chunks.push_back(chunk);
  } while (continues() && accept(TokenKind::Plus));
  pattern.chunks = keep<Expr *>(chunks);
  return true;
}

/// on := 'on' name
bool Parser::parseOnRank(GreedyClause &clause) {
  if (!continues() || !acceptWord("on"))
    return true;
  return expectName(clause.rank, "a name for the rank after 'on'");
}
