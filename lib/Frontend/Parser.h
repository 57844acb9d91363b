//===- Parser.h - from tokens to syntax trees ------------------------------===//
//
// Recursive descent with one token of look-ahead. A parse function returns null
// (or false) once it has reported an error; lists of statements recover at the
// next statement. Above each function stands its rule in EBNF.
//
// A statement ends at `;`, at `}` or before a token that is the first on its
// line. Inside brackets, and where an operator waits for its operand, a new line
// means nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_PARSER_H
#define DUALPIPE_LIB_FRONTEND_PARSER_H

#include "AST.h"
#include "Lexer.h"
#include "dualpipe/Frontend/Frontend.h"

#include "llvm/Support/Allocator.h"

#include <optional>

namespace dualpipe::frontend {

/// Parses one file.
class Parser {
public:
  Parser(llvm::BumpPtrAllocator &arena, llvm::StringRef text, uint32_t file, const Limits &limits,
         DiagnosticSink &sink);

  /// Fills `tree`. What could not be parsed is missing from it and reported.
  void parseFile(FileDecl &tree);

private:
  // Tokens.
  void advance();
  bool at(TokenKind kind) const { return token.kind == kind; }
  bool accept(TokenKind kind);
  bool expect(TokenKind kind, llvm::StringRef where);
  /// The token belongs to the statement that has begun.
  /// The token is the contextual word `word`.
  bool atWord(llvm::StringRef word) const {
    return at(TokenKind::Identifier) && token.spelling == word;
  }
  bool acceptWord(llvm::StringRef word);
  bool continues() const { return brackets != 0 || !token.startsLine; }
  bool atStatementEnd() const;
  bool expectStatementEnd(llvm::StringRef after);
  void skipStatement();
  bool expectName(Binding &binding, llvm::StringRef what);
  bool expectPlainString(llvm::StringRef &text, llvm::StringRef what);

  // Errors.
  Diagnostic *error(SourceLoc loc, std::string message);
  Diagnostic *errorExpected(llvm::StringRef expected);
  bool tooManyErrors() const { return sink.numErrors() - errorsBefore >= limits.maxErrors; }

  // Declarations.
  bool parseVersion();
  void parseTopLevel(struct TopLevel &found);
  bool parseImport(ImportDecl &import);
  DefDecl *parseDef();
  ScheduleDecl *parseSchedule();
  bool parseScheduleParams(ScheduleDecl &schedule);
  bool parseScheduleParam(ParamDecl &param);
  void checkScheduleParams(const ScheduleDecl &schedule);
  bool parseParamType(ParamDecl &param);
  void parseScheduleItems(ScheduleDecl &schedule);
  Item *parseItem();
  Item *parsePlan();
  Item *parseRequire();
  Item *parsePipeline();
  bool parseFamilyRange(PipelineItem &pipeline);
  bool parsePipelineClause(PipelineItem &pipeline);
  Item *parseShare();

  // Plans and sections.
  void suggestWord(Diagnostic &diagnostic, llvm::ArrayRef<llvm::StringRef> words) const;
  template <typename Parse> bool parseLines(llvm::StringRef what, Parse parseLine);
  Item *parseCost();
  Item *parseMemory();
  Item *parseModel();
  bool parseReads(ModelItem &model);
  bool parseTensor(ReadsClause &clause);
  bool parseMapClause(llvm::MutableArrayRef<MapClause> &clauses,
                      llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef where);
  Item *parseRank();
  Item *parseTimeline();
  Item *parseGreedy();
  bool parseGreedyClause(GreedyClause &clause);
  bool parseGreedyFor(GreedyClause &clause);
  bool parsePrefer(GreedyClause &clause);
  bool parseChoice(ChoicePattern &choice);
  bool parseOpPattern(OpPattern &pattern);
  bool parseOpKind(OpKind &kind);
  bool parseChunks(OpPattern &pattern);
  bool parseOnRank(GreedyClause &clause);

  // Statements.
  bool parseBlock(Block &block);
  Stmt *parseStatement();
  LetStmt *parseLet();
  Stmt *parseIf();
  Stmt *parseRepeat();
  Stmt *parseFor();
  Stmt *parseEvery();
  Stmt *parsePhase();
  Stmt *parseOp(OpKind kind);
  bool parseOpTime(OpStmt &op);
  Stmt *parseFused();
  Stmt *parseTransfer();
  Stmt *parseCallStatement();
  bool parseBlockInto(Stmt &stmt, Block &block);

  // Expressions.
  Expr *parseExpr();
  Expr *parseBinary(unsigned minPrecedence);
  Expr *parseUnary();
  Expr *parsePostfix();
  Expr *parsePrimary();
  Expr *parseIfExpr();
  Expr *parseParenthesised();
  Expr *parseMinMax();
  Expr *parseCall(const Token &callee);
  StringExpr *parseString();
  Expr *parseInterpolated(llvm::StringRef text, SourceLoc loc);
  bool parseArguments(llvm::ArrayRef<Expr *> &arguments);
  Expr *checkDepth(Expr *expr);

  template <typename T, typename... Args> T *create(Args &&...args) {
    return new (arena.Allocate<T>()) T(std::forward<Args>(args)...);
  }
  template <typename T> llvm::MutableArrayRef<T> keep(llvm::ArrayRef<T> list) {
    T *data = arena.Allocate<T>(list.size());
    std::uninitialized_copy(list.begin(), list.end(), data);
    return {data, list.size()};
  }

  /// Counts a level of nesting for as long as it lives.
  class Level {
  public:
    explicit Level(Parser &parser) : parser(parser) { ++parser.nesting; }
    ~Level() { --parser.nesting; }
    Level(const Level &) = delete;
    /// Reports text that is nested too deeply.
    bool isTooDeep();

  private:
    Parser &parser;
  };

  llvm::BumpPtrAllocator &arena;
  const Limits &limits;
  DiagnosticSink &sink;
  size_t errorsBefore;
  Lexer lexer;
  Token token;
  unsigned brackets = 0;
  unsigned nesting = 0;
  /// Inside the braces of a string, whose end reads as the end of the text.
  bool inString = false;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_PARSER_H
