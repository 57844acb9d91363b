//===- ParseDeclarations.cpp - files, schedules, pipelines, definitions ----===//

#include "Parser.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::SmallVector;
using llvm::StringRef;

namespace dualpipe::frontend {
/// The declarations of a file while it is read.
struct TopLevel {
  SmallVector<ImportDecl> imports;
  SmallVector<DefDecl *> defs;
  SmallVector<ScheduleDecl *> schedules;
};
} // namespace dualpipe::frontend

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// file := version { import end | def end | schedule end | ';' }
void Parser::parseFile(FileDecl &tree) {
  if (!parseVersion())
    return;
  TopLevel found;
  while (!at(TokenKind::EndOfFile)) {
    if (accept(TokenKind::Semicolon))
      continue;
    parseTopLevel(found);
  }
  tree.imports = keep<ImportDecl>(found.imports);
  tree.defs = keep<DefDecl *>(found.defs);
  tree.schedules = keep<ScheduleDecl *>(found.schedules);
}

/// version := 'pipe' '1' end
bool Parser::parseVersion() {
  if (!at(TokenKind::KwPipe)) {
    errorExpected("the language version, 'pipe 1', at the beginning of the file");
    return false;
  }
  advance();
  if (!at(TokenKind::Integer) || token.startsLine) {
    errorExpected("a version number after 'pipe'");
    return false;
  }
  if (token.spelling != "1") {
    error(token.loc,
          ("language version " + token.spelling + " is not known; expected 'pipe 1'").str());
    return false;
  }
  advance();
  return expectStatementEnd("the language version");
}

void Parser::parseTopLevel(TopLevel &found) {
  const char *before = token.spelling.data();
  bool parsed = false;
  if (at(TokenKind::KwImport)) {
    if ((parsed = parseImport(found.imports.emplace_back())) == false)
      found.imports.pop_back();
  } else if (at(TokenKind::KwDef)) {
    DefDecl *def = parseDef();
    if ((parsed = def != nullptr))
      found.defs.push_back(def);
  } else if (at(TokenKind::KwSchedule)) {
    ScheduleDecl *schedule = parseSchedule();
    if ((parsed = schedule != nullptr))
      found.schedules.push_back(schedule);
  } else {
    errorExpected("'import', 'def' or 'schedule'");
  }
  if (parsed && expectStatementEnd("the declaration"))
    return;
  if (token.spelling.data() == before || !atStatementEnd() || at(TokenKind::RightBrace))
    skipStatement();
  // A stray brace has been reported; here it closes nothing.
  brackets = 0;
  accept(TokenKind::RightBrace);
}

/// import := 'import' plain-string
bool Parser::parseImport(ImportDecl &import) {
  import.loc = token.loc;
  advance();
  SourceLoc loc = token.loc;
  if (!expectPlainString(import.path, "the path of a file"))
    return false;
  if (!import.path.empty())
    return true;
  error(loc, "the path of an import is empty");
  return false;
}

/// def := 'def' name '(' [ name { ',' name } ] ')' ( '=' expr | block )
DefDecl *Parser::parseDef() {
  auto *def = create<DefDecl>();
  advance();
  if (!expectName(def->name, "a name after 'def'") ||
      !expect(TokenKind::LeftParen, "after the name"))
    return nullptr;
  SmallVector<Binding> params;
  ++brackets;
  if (!at(TokenKind::RightParen)) {
    do {
      if (!expectName(params.emplace_back(), "the name of a parameter"))
        return nullptr;
    } while (accept(TokenKind::Comma));
  }
  --brackets;
  if (!expect(TokenKind::RightParen, "after the parameters"))
    return nullptr;
  def->params = keep<Binding>(params);
  if (accept(TokenKind::Assign))
    return (def->value = parseExpr()) ? def : nullptr;
  if (!at(TokenKind::LeftBrace)) {
    errorExpected("'=' or '{' after the parameters");
    return nullptr;
  }
  return parseBlock(def->body) ? def : nullptr;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// schedule := 'schedule' name '(' params ')' '{' { item end | ';' } '}'
ScheduleDecl *Parser::parseSchedule() {
  auto *schedule = create<ScheduleDecl>();
  schedule->loc = token.loc;
  advance();
  if (!expectName(schedule->name, "a name after 'schedule'") || !parseScheduleParams(*schedule))
    return nullptr;
  SourceLoc open = token.loc;
  if (!expect(TokenKind::LeftBrace, "after the parameters"))
    return nullptr;
  parseScheduleItems(*schedule);
  if (accept(TokenKind::RightBrace))
    return schedule;
  if (Diagnostic *diagnostic = errorExpected("'}'"))
    diagnostic->note(open, "to match this '{'");
  return nullptr;
}

/// params := param { ',' param }
bool Parser::parseScheduleParams(ScheduleDecl &schedule) {
  if (!expect(TokenKind::LeftParen, "after the name"))
    return false;
  SmallVector<ParamDecl> params;
  ++brackets;
  do {
    if (!parseScheduleParam(params.emplace_back()))
      return false;
  } while (accept(TokenKind::Comma));
  --brackets;
  if (!expect(TokenKind::RightParen, "after the parameters"))
    return false;
  schedule.params = keep<ParamDecl>(params);
  checkScheduleParams(schedule);
  return true;
}

/// param := 'ranks' name | 'microbatches' name | 'param' name [ type ] [ '=' expr ]
bool Parser::parseScheduleParam(ParamDecl &param) {
  param.loc = token.loc;
  if (at(TokenKind::KwRanks)) {
    param.kind = ParamDecl::Kind::Ranks;
  } else if (at(TokenKind::KwMicrobatches)) {
    param.kind = ParamDecl::Kind::Microbatches;
  } else if (!at(TokenKind::KwParam)) {
    errorExpected("'ranks', 'microbatches' or 'param'");
    return false;
  }
  std::string keyword = token.spelling.str();
  advance();
  if (!expectName(param.binding, "a name after '" + keyword + "'"))
    return false;
  if (!parseParamType(param))
    return false;
  if (!at(TokenKind::Assign))
    return true;
  if (param.kind != ParamDecl::Kind::Param) {
    error(token.loc, "'" + keyword + "' has no default; it is given when the schedule is compiled");
    return false;
  }
  advance();
  if (!(param.defaultValue = parseExpr()))
    return false;
  if (!param.hasType && llvm::isa<BooleanExpr>(param.defaultValue))
    param.type = ParamDecl::Type::Boolean;
  return true;
}

/// type := ':' ( 'int' | 'bool' )
/// Without one, a parameter is an integer unless its default is `true` or `false`.
bool Parser::parseParamType(ParamDecl &param) {
  param.hasType = param.kind == ParamDecl::Kind::Param && accept(TokenKind::Colon);
  if (param.hasType && acceptWord("bool")) {
    param.type = ParamDecl::Type::Boolean;
  } else if (param.hasType && !acceptWord("int")) {
    errorExpected("the type 'int' or 'bool' after ':'");
    return false;
  }
  return true;
}

/// Exactly one `ranks` and one `microbatches`.
void Parser::checkScheduleParams(const ScheduleDecl &schedule) {
  const ParamDecl *ranks = nullptr, *microbatches = nullptr;
  for (const ParamDecl &param : schedule.params) {
    if (param.kind == ParamDecl::Kind::Param)
      continue;
    bool isRanks = param.kind == ParamDecl::Kind::Ranks;
    const ParamDecl *&first = isRanks ? ranks : microbatches;
    if (first) {
      if (Diagnostic *diagnostic =
              error(param.loc, std::string("a schedule has one '") +
                                   (isRanks ? "ranks" : "microbatches") + "' parameter, got two"))
        diagnostic->note(first->loc, "the first is here");
      return;
    }
    first = &param;
  }
  if (ranks && microbatches)
    return;
  error(schedule.name.loc, std::string("schedule '") + schedule.name.name.str() +
                               "' needs the parameter '" + (ranks ? "microbatches M" : "ranks P") +
                               "'");
}

void Parser::parseScheduleItems(ScheduleDecl &schedule) {
  Level level(*this);
  SmallVector<Item *> items;
  while (!at(TokenKind::RightBrace) && !at(TokenKind::EndOfFile)) {
    if (accept(TokenKind::Semicolon))
      continue;
    const char *before = token.spelling.data();
    if (Item *item = parseItem()) {
      items.push_back(item);
      if (expectStatementEnd("the declaration"))
        continue;
    }
    if (token.spelling.data() == before || !atStatementEnd())
      skipStatement();
    brackets = 0;
  }
  schedule.items = keep<Item *>(items);
}

/// item := require | let | pipeline | share | def | cost | memory | model | rank | timeline |
/// greedy
Item *Parser::parseItem() {
  SourceLoc loc = token.loc;
  switch (token.kind) {
  case TokenKind::KwRequire:
    return parseRequire();
  case TokenKind::KwPipeline:
    return parsePipeline();
  case TokenKind::KwShare:
    return parseShare();
  case TokenKind::KwRank:
    return parseRank();
  case TokenKind::KwTimeline:
    return parseTimeline();
  case TokenKind::KwGreedy:
    return parseGreedy();
  case TokenKind::KwLet: {
    auto *item = create<LetItem>(loc);
    return (item->let = parseLet()) ? item : nullptr;
  }
  case TokenKind::KwDef: {
    auto *item = create<DefItem>(loc);
    return (item->def = parseDef()) ? item : nullptr;
  }
  case TokenKind::Identifier:
    return parsePlan();
  default:
    errorExpected("a declaration of a schedule, such as 'require', 'pipeline' or 'rank'");
    return nullptr;
  }
}

/// require := 'require' expr string
Item *Parser::parseRequire() {
  auto *item = create<RequireItem>(token.loc);
  advance();
  if (!(item->condition = parseExpr()))
    return nullptr;
  if (!at(TokenKind::String)) {
    errorExpected("a message after the condition");
    return nullptr;
  }
  return (item->message = parseString()) ? item : nullptr;
}

/// pipeline := 'pipeline' name [ family ] '{' clause end clause end clause end '}'
Item *Parser::parsePipeline() {
  auto *item = create<PipelineItem>(token.loc);
  advance();
  if (!expectName(item->name, "a name after 'pipeline'") || !parseFamilyRange(*item))
    return nullptr;
  SourceLoc open = token.loc;
  if (!expect(TokenKind::LeftBrace, "after the name"))
    return nullptr;
  bool complete = true;
  while (!at(TokenKind::RightBrace) && !at(TokenKind::EndOfFile)) {
    if (accept(TokenKind::Semicolon))
      continue;
    const char *before = token.spelling.data();
    if (parsePipelineClause(*item) && expectStatementEnd("the clause"))
      continue;
    complete = false;
    if (token.spelling.data() == before || !atStatementEnd())
      skipStatement();
    brackets = 0;
  }
  if (!accept(TokenKind::RightBrace)) {
    if (Diagnostic *diagnostic = errorExpected("'}'"))
      diagnostic->note(open, "to match this '{'");
    return nullptr;
  }
  const char *missing = !item->stages         ? "stages"
                        : !item->microbatches ? "microbatches"
                        : !item->placement    ? "place"
                                              : nullptr;
  if (complete && missing)
    error(item->name.loc,
          "pipeline '" + item->name.name.str() + "' has no '" + missing + "' clause");
  return complete && !missing ? item : nullptr;
}

/// family := '(' name 'in' expr '..' expr ')'
bool Parser::parseFamilyRange(PipelineItem &pipeline) {
  if (!at(TokenKind::LeftParen))
    return true;
  ++brackets;
  advance();
  if (!expectName(pipeline.member, "a name for the members of the family") ||
      !expect(TokenKind::KwIn, "after the name") || !(pipeline.begin = parseExpr()) ||
      !expect(TokenKind::DotDot, "after the first number") || !(pipeline.end = parseExpr()))
    return false;
  --brackets;
  return expect(TokenKind::RightParen, "after the range");
}

/// clause := 'stages' expr | 'microbatches' expr | 'place' name '->' expr
bool Parser::parsePipelineClause(PipelineItem &pipeline) {
  Token first = token;
  Expr **value = at(TokenKind::KwStages)         ? &pipeline.stages
                 : at(TokenKind::KwMicrobatches) ? &pipeline.microbatches
                 : at(TokenKind::KwPlace)        ? &pipeline.placement
                                                 : nullptr;
  if (!value) {
    errorExpected("'stages', 'microbatches' or 'place'");
    return false;
  }
  if (*value) {
    error(token.loc, "a pipeline has one " + first.describe() + " clause, got two");
    return false;
  }
  advance();
  if (first.kind == TokenKind::KwPlace &&
      (!expectName(pipeline.placedStage, "a name for the stage after 'place'") ||
       !expect(TokenKind::Arrow, "after the name")))
    return false;
  return (*value = parseExpr()) != nullptr;
}

/// share := 'share' name { ',' name }
Item *Parser::parseShare() {
  auto *item = create<ShareItem>(token.loc);
  advance();
  SmallVector<NameExpr *> pipelines;
  do {
    Binding name;
    if (!expectName(name, "the name of a pipeline"))
      return nullptr;
    pipelines.push_back(create<NameExpr>(name.loc, name.name));
  } while (accept(TokenKind::Comma));
  item->pipelines = keep<NameExpr *>(pipelines);
  return item;
}
