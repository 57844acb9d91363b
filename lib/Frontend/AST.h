//===- AST.h - syntax trees of the language --------------------------------===//
//
// Nodes live in the arena of their module and are never destroyed one by one,
// so they hold references into the arena and the source text only. The parser
// builds them; the resolver binds names to slots and calls to definitions.
// After that they do not change, and ranks are interpreted in parallel from one
// tree.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_AST_H
#define DUALPIPE_LIB_FRONTEND_AST_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Casting.h"

#include <algorithm>
#include <cstdint>

namespace dualpipe::frontend {

struct DefDecl;
struct PipelineItem;

/// Where the value of a name is kept while a program runs: in the frame of the
/// running body, or among the values of the schedule.
enum class Storage : uint8_t { Local, Schedule };

/// A name that is given a value: of a `let`, a loop, a parameter.
struct Binding {
  llvm::StringRef name;
  SourceLoc loc;
  /// Set by the resolver.
  uint32_t slot = 0;
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class BinaryOp : uint8_t {
  Or,
  And,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
};

/// How the operator is written.
llvm::StringRef getSpelling(BinaryOp op);

struct Expr {
  enum class Kind : uint8_t {
    Integer,
    Decimal,
    Boolean,
    Training,
    String,
    Name,
    Negate,
    Not,
    Binary,
    If,
    Tuple,
    Call,
    MinMax,
    Index,
    Stage,
  };

  Expr(Kind kind, SourceLoc loc) : kind(kind), loc(loc) {}

  /// Counts a child into size and depth. A child may be missing after an error.
  void adopt(const Expr *child) {
    if (!child)
      return;
    size += child->size;
    depth = std::max(depth, child->depth + 1);
  }

  Kind kind;
  SourceLoc loc;
  /// Nodes of the tree below and with this one: its cost in steps.
  uint32_t size = 1;
  /// Levels of the tree below and with this one.
  uint32_t depth = 1;
};

template <Expr::Kind K> struct ExprOf : Expr {
  explicit ExprOf(SourceLoc loc) : Expr(K, loc) {}
  static bool classof(const Expr *expr) { return expr->kind == K; }
};

struct IntegerExpr : ExprOf<Expr::Kind::Integer> {
  IntegerExpr(SourceLoc loc, int64_t value) : ExprOf(loc), value(value) {}
  int64_t value;
};

/// `18.522`, in millionths. It has a meaning as a cost only.
struct DecimalExpr : ExprOf<Expr::Kind::Decimal> {
  DecimalExpr(SourceLoc loc, int64_t millionths) : ExprOf(loc), millionths(millionths) {}
  int64_t millionths;
};

struct BooleanExpr : ExprOf<Expr::Kind::Boolean> {
  BooleanExpr(SourceLoc loc, bool value) : ExprOf(loc), value(value) {}
  bool value;
};

/// `training`
struct TrainingExpr : ExprOf<Expr::Kind::Training> {
  using ExprOf::ExprOf;
};

/// `"text {value} text"`: texts and values take turns, beginning and ending
/// with a text.
struct StringExpr : ExprOf<Expr::Kind::String> {
  using ExprOf::ExprOf;
  llvm::ArrayRef<llvm::StringRef> texts;
  llvm::ArrayRef<Expr *> values;
};

struct NameExpr : ExprOf<Expr::Kind::Name> {
  NameExpr(SourceLoc loc, llvm::StringRef name) : ExprOf(loc), name(name) {}
  llvm::StringRef name;
  Storage storage = Storage::Local;
  uint32_t slot = 0;
};

struct NegateExpr : ExprOf<Expr::Kind::Negate> {
  using ExprOf::ExprOf;
  Expr *operand = nullptr;
};

struct NotExpr : ExprOf<Expr::Kind::Not> {
  using ExprOf::ExprOf;
  Expr *operand = nullptr;
};

/// Its place is that of the operator.
struct BinaryExpr : ExprOf<Expr::Kind::Binary> {
  BinaryExpr(SourceLoc loc, BinaryOp op, Expr *lhs, Expr *rhs)
      : ExprOf(loc), op(op), lhs(lhs), rhs(rhs) {
    adopt(lhs);
    adopt(rhs);
  }
  BinaryOp op;
  Expr *lhs;
  Expr *rhs;
};

/// `if c then a else b`
struct IfExpr : ExprOf<Expr::Kind::If> {
  using ExprOf::ExprOf;
  Expr *condition = nullptr;
  Expr *thenValue = nullptr;
  Expr *elseValue = nullptr;
};

struct TupleExpr : ExprOf<Expr::Kind::Tuple> {
  using ExprOf::ExprOf;
  llvm::ArrayRef<Expr *> elements;
};

/// `f(x, y)`, or `p(i)`: a pipeline of a family.
struct CallExpr : ExprOf<Expr::Kind::Call> {
  using ExprOf::ExprOf;
  llvm::StringRef callee;
  llvm::ArrayRef<Expr *> arguments;
  /// One of the two is set by the resolver: what is called, or the name of the family.
  const DefDecl *target = nullptr;
  NameExpr *family = nullptr;
};

/// `min(a, b)`, `max(a, b, c)`
struct MinMaxExpr : ExprOf<Expr::Kind::MinMax> {
  using ExprOf::ExprOf;
  bool isMax = false;
  llvm::ArrayRef<Expr *> arguments;
};

/// `p[k]`: a chunk of a pipeline, or an element of a tuple.
struct IndexExpr : ExprOf<Expr::Kind::Index> {
  using ExprOf::ExprOf;
  Expr *base = nullptr;
  Expr *index = nullptr;
};

/// `p.stage(s)`
struct StageExpr : ExprOf<Expr::Kind::Stage> {
  using ExprOf::ExprOf;
  Expr *base = nullptr;
  Expr *stage = nullptr;
};

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

struct Stmt {
  enum class Kind : uint8_t { Let, If, Repeat, For, Every, Phase, Op, Fused, Transfer, Call };

  Stmt(Kind kind, SourceLoc loc) : kind(kind), loc(loc) {}

  void adopt(const Expr *child) {
    if (!child)
      return;
    cost += child->size;
    depth = std::max(depth, child->depth + 1);
  }

  Kind kind;
  SourceLoc loc;
  /// Steps of one execution, without those of nested statements.
  uint32_t cost = 1;
  /// Levels of nested statements and expressions.
  uint32_t depth = 1;
};

template <Stmt::Kind K> struct StmtOf : Stmt {
  explicit StmtOf(SourceLoc loc) : Stmt(K, loc) {}
  static bool classof(const Stmt *stmt) { return stmt->kind == K; }
};

/// `{ … }`
struct Block {
  llvm::ArrayRef<Stmt *> statements;
  uint32_t depth = 0;
};

/// `let x = e`, `let (x, y) = e`
struct LetStmt : StmtOf<Stmt::Kind::Let> {
  using StmtOf::StmtOf;
  llvm::MutableArrayRef<Binding> bindings;
  bool isTuple = false;
  Expr *value = nullptr;
};

struct IfStmt : StmtOf<Stmt::Kind::If> {
  using StmtOf::StmtOf;
  Expr *condition = nullptr;
  Block thenBlock;
  /// Holds one nested `if` for `else if`.
  Block elseBlock;
};

/// `repeat n as i { … }`
struct RepeatStmt : StmtOf<Stmt::Kind::Repeat> {
  using StmtOf::StmtOf;
  Expr *count = nullptr;
  /// An empty name where the count is not bound.
  Binding counter;
  Block body;
};

/// `for i in a..b { … }`
struct ForStmt : StmtOf<Stmt::Kind::For> {
  using StmtOf::StmtOf;
  Binding counter;
  Expr *begin = nullptr;
  Expr *end = nullptr;
  Block body;
};

/// `every T as i in a..b { … }`: a block per micro-batch, `T` later each time.
struct EveryStmt : StmtOf<Stmt::Kind::Every> {
  using StmtOf::StmtOf;
  Expr *period = nullptr;
  Binding counter;
  /// Both missing where the range is that of all micro-batches.
  Expr *begin = nullptr;
  Expr *end = nullptr;
  Block body;
};

struct PhaseStmt : StmtOf<Stmt::Kind::Phase> {
  using StmtOf::StmtOf;
  llvm::StringRef name;
  /// Number of the name in the module; set by the resolver.
  uint32_t id = 0;
  Block body;
};

/// `bwd c @ m split (cond)`; in a timeline with `at t`, or `in gaps`.
struct OpStmt : StmtOf<Stmt::Kind::Op> {
  using StmtOf::StmtOf;
  OpKind op = OpKind::Forward;
  /// Missing only in a `bwd_weight` on its own.
  Expr *chunk = nullptr;
  /// May be missing.
  Expr *microbatch = nullptr;
  /// May be missing.
  Expr *split = nullptr;
  /// Missing outside of a timeline.
  Expr *time = nullptr;
  bool inGaps = false;
  /// Number of the place in the module; set by the resolver.
  uint32_t id = 0;
};

struct FusedStmt : StmtOf<Stmt::Kind::Fused> {
  using StmtOf::StmtOf;
  Block body;
  /// Missing outside of a timeline.
  Expr *time = nullptr;
};

/// `send fwd c @ m`, `recv bwd c @ m`: passes on what an op made, or receives
/// what it needs.
struct TransferStmt : StmtOf<Stmt::Kind::Transfer> {
  using StmtOf::StmtOf;
  bool isSend = false;
  /// `bwd`: a gradient.
  bool isGrad = false;
  Expr *chunk = nullptr;
  /// May be missing.
  Expr *microbatch = nullptr;
  /// Number of the place in the module; set by the resolver.
  uint32_t id = 0;
};

/// `body(a, b)` as a statement.
struct CallStmt : StmtOf<Stmt::Kind::Call> {
  using StmtOf::StmtOf;
  llvm::StringRef callee;
  llvm::ArrayRef<Expr *> arguments;
  const DefDecl *target = nullptr;
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// `def f(x) = e` or `def f(x) { … }`
struct DefDecl {
  Binding name;
  llvm::MutableArrayRef<Binding> params;
  /// The value of a function; missing where the definition is a block.
  Expr *value = nullptr;
  Block body;
  /// Size of a frame: parameters, then locals. Set by the resolver.
  uint32_t numSlots = 0;

  bool isFunction() const { return value != nullptr; }
  uint32_t getDepth() const { return 1 + (value ? value->depth : body.depth); }
};

/// `ranks P`, `microbatches M`, `param K = 2`, `param eager: bool = true`
struct ParamDecl {
  enum class Kind : uint8_t { Ranks, Microbatches, Param };
  enum class Type : uint8_t { Integer, Boolean };
  Kind kind = Kind::Param;
  Type type = Type::Integer;
  /// The type is written.
  bool hasType = false;
  Binding binding;
  SourceLoc loc;
  Expr *defaultValue = nullptr;
};

/// What stands in a schedule.
struct Item {
  enum class Kind : uint8_t {
    Require,
    Let,
    Pipeline,
    Share,
    Cost,
    Memory,
    Model,
    Def,
    Rank,
    Timeline,
    Greedy,
  };
  Item(Kind kind, SourceLoc loc) : kind(kind), loc(loc) {}
  Kind kind;
  SourceLoc loc;

  /// States a part of the order.
  bool isSection() const { return kind >= Kind::Rank; }
};

template <Item::Kind K> struct ItemOf : Item {
  explicit ItemOf(SourceLoc loc) : Item(K, loc) {}
  static bool classof(const Item *item) { return item->kind == K; }
};

struct RequireItem : ItemOf<Item::Kind::Require> {
  using ItemOf::ItemOf;
  Expr *condition = nullptr;
  StringExpr *message = nullptr;
};

struct LetItem : ItemOf<Item::Kind::Let> {
  using ItemOf::ItemOf;
  LetStmt *let = nullptr;
};

struct PipelineItem : ItemOf<Item::Kind::Pipeline> {
  using ItemOf::ItemOf;
  Binding name;
  Expr *stages = nullptr;
  Expr *microbatches = nullptr;
  Binding placedStage;
  Expr *placement = nullptr;
  /// The member of a family, from `begin` up to `end`; missing where this is one pipeline.
  Binding member;
  Expr *begin = nullptr;
  Expr *end = nullptr;
  /// Number of locals; set by the resolver.
  uint32_t numSlots = 0;

  bool isFamily() const { return begin != nullptr; }
};

struct ShareItem : ItemOf<Item::Kind::Share> {
  using ItemOf::ItemOf;
  llvm::ArrayRef<NameExpr *> pipelines;
};

struct DefItem : ItemOf<Item::Kind::Def> {
  using ItemOf::ItemOf;
  DefDecl *def = nullptr;
};

/// A value, or one for each stage or rank: `2`, `s -> if s == 0 then 2 else 1`
struct MapClause {
  llvm::StringRef name;
  SourceLoc loc;
  /// An empty name where the value is the same for all.
  Binding index;
  Expr *value = nullptr;
};

/// `cost { fwd 1; bwd s -> 2 }`
struct CostItem : ItemOf<Item::Kind::Cost> {
  using ItemOf::ItemOf;
  llvm::MutableArrayRef<MapClause> clauses;
};

/// `memory { activation s -> 3; context 1; limit r -> P - r }`
struct MemoryItem : ItemOf<Item::Kind::Memory> {
  using ItemOf::ItemOf;
  llvm::MutableArrayRef<MapClause> clauses;
};

/// `bwd_weight reads saved, context`
struct ReadsClause {
  OpKind half = OpKind::Backward;
  SourceLoc loc;
  /// Bits of program::SlotKind.
  uint32_t reads = 0;
};

/// `model { group s -> if s == 0 then 0 else 1; bwd reads saved, grad_output }`
struct ModelItem : ItemOf<Item::Kind::Model> {
  using ItemOf::ItemOf;
  /// One or none.
  llvm::MutableArrayRef<MapClause> groups;
  llvm::ArrayRef<ReadsClause> halves;
};

/// `timeline { … }`
struct TimelineItem : ItemOf<Item::Kind::Timeline> {
  using ItemOf::ItemOf;
  Block body;
  uint32_t numSlots = 0;
};

/// `bwd of main[1]`: ops of a kind, of every chunk where none is named.
struct OpPattern {
  OpKind op = OpKind::Forward;
  SourceLoc loc;
  llvm::ArrayRef<Expr *> chunks;
};

/// One choice of a `prefer`: a kind of op, or of fused groups.
struct ChoicePattern {
  llvm::ArrayRef<OpPattern> members;
  /// Number of the place in the module; set by the resolver.
  uint32_t id = 0;
  SourceLoc loc;
};

/// A line of `greedy { … }`.
struct GreedyClause {
  enum class Kind : uint8_t { Prefer, Limit, Until, For };
  Kind kind = Kind::Prefer;
  SourceLoc loc;
  /// `on r`; an empty name where it is missing.
  Binding rank;
  /// Prefer.
  llvm::MutableArrayRef<ChoicePattern> choices;
  /// Limit: the first op, with the chunks, and the last. Until: the op.
  OpPattern op;
  OpKind last = OpKind::Backward;
  /// The most in flight, or the count to reach.
  Expr *bound = nullptr;
  /// For: the lines, for each number from `begin` up to `end`.
  Binding counter;
  Expr *begin = nullptr;
  Expr *end = nullptr;
  llvm::MutableArrayRef<GreedyClause> lines;
};

/// `greedy { … }`
struct GreedyItem : ItemOf<Item::Kind::Greedy> {
  using ItemOf::ItemOf;
  llvm::MutableArrayRef<GreedyClause> clauses;
  /// The most locals of a line. Set by the resolver.
  uint32_t numSlots = 0;
};

/// `rank r { … }`
struct RankItem : ItemOf<Item::Kind::Rank> {
  using ItemOf::ItemOf;
  Binding rank;
  Block body;
  uint32_t numSlots = 0;
};

struct ScheduleDecl {
  Binding name;
  SourceLoc loc;
  llvm::MutableArrayRef<ParamDecl> params;
  llvm::ArrayRef<Item *> items;
  /// Values of the schedule. Set by the resolver.
  uint32_t numSlots = 0;
};

struct ImportDecl {
  llvm::StringRef path;
  SourceLoc loc;
  /// Index of the file in the module; set when it is loaded.
  uint32_t file = 0;
};

struct FileDecl {
  llvm::MutableArrayRef<ImportDecl> imports;
  llvm::ArrayRef<DefDecl *> defs;
  llvm::ArrayRef<ScheduleDecl *> schedules;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_AST_H
