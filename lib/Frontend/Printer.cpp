//===- Printer.cpp - syntax trees as text ----------------------------------===//
//
// Expressions are printed on the line of their statement, with every bracket
// written: what is printed shows how the text was grouped.
//
//===----------------------------------------------------------------------===//

#include "Printer.h"

#include "dualpipe/Schedule/ModelContract.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;

StringRef frontend::getSpelling(BinaryOp op) {
  switch (op) {
  case BinaryOp::Or:
    return "or";
  case BinaryOp::And:
    return "and";
  case BinaryOp::Equal:
    return "==";
  case BinaryOp::NotEqual:
    return "!=";
  case BinaryOp::Less:
    return "<";
  case BinaryOp::LessEqual:
    return "<=";
  case BinaryOp::Greater:
    return ">";
  case BinaryOp::GreaterEqual:
    return ">=";
  case BinaryOp::Add:
    return "+";
  case BinaryOp::Subtract:
    return "-";
  case BinaryOp::Multiply:
    return "*";
  case BinaryOp::Divide:
    return "/";
  case BinaryOp::FloorDivide:
    return "div";
  case BinaryOp::Modulo:
    return "mod";
  }
  return "";
}

namespace {

class TreePrinter {
public:
  explicit TreePrinter(llvm::raw_ostream &os) : os(os) {}

  void print(const FileDecl &file);

private:
  llvm::raw_ostream &line(StringRef word) { return os.indent(indent) << word; }
  void place(SourceLoc loc) { os << "  @" << loc.line << ':' << loc.column << '\n'; }
  void print(const DefDecl &def);
  void print(const ScheduleDecl &schedule);
  void print(const Item &item);
  void print(const PipelineItem &pipeline);
  void printRange(const Expr &begin, const Expr &end);
  void printClauses(StringRef word, SourceLoc loc, llvm::ArrayRef<MapClause> clauses);
  void print(const ModelItem &model);
  void print(const OpPattern &pattern);
  void printChunks(const OpPattern &pattern);
  void print(const ChoicePattern &choice);
  void print(const GreedyClause &clause);
  void print(const Block &block);
  void print(const Stmt &stmt);
  void print(const LetStmt &let);
  void print(const OpStmt &op);
  void print(const EveryStmt &every);
  void print(const TransferStmt &transfer);
  void printTime(const Expr *time);
  void printIf(const IfStmt &stmt);
  void print(const Expr &expr);
  void print(llvm::ArrayRef<Expr *> list);
  void print(const StringExpr &string);
  void printQuoted(StringRef text, bool quotes);

  llvm::raw_ostream &os;
  unsigned indent = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void TreePrinter::print(const FileDecl &file) {
  for (const ImportDecl &import : file.imports) {
    line("import ");
    printQuoted(import.path, true);
    place(import.loc);
  }
  for (const DefDecl *def : file.defs)
    print(*def);
  for (const ScheduleDecl *schedule : file.schedules)
    print(*schedule);
}

void TreePrinter::print(const DefDecl &def) {
  line("def ") << def.name.name << '(';
  llvm::interleaveComma(def.params, os, [&](const Binding &param) { os << param.name; });
  os << ')';
  if (def.value) {
    os << " = ";
    print(*def.value);
  }
  place(def.name.loc);
  print(def.body);
}

void TreePrinter::print(const ScheduleDecl &schedule) {
  line("schedule ") << schedule.name.name;
  place(schedule.loc);
  indent += 2;
  for (const ParamDecl &param : schedule.params) {
    line(param.kind == ParamDecl::Kind::Ranks          ? "ranks "
         : param.kind == ParamDecl::Kind::Microbatches ? "microbatches "
                                                       : "param ")
        << param.binding.name << (param.type == ParamDecl::Type::Boolean ? ": bool" : "");
    if (param.defaultValue) {
      os << " = ";
      print(*param.defaultValue);
    }
    place(param.loc);
  }
  for (const Item *item : schedule.items)
    print(*item);
  indent -= 2;
}

void TreePrinter::print(const Item &item) {
  switch (item.kind) {
  case Item::Kind::Require:
    line("require ");
    print(*cast<RequireItem>(item).condition);
    os << ' ';
    print(*cast<RequireItem>(item).message);
    return place(item.loc);
  case Item::Kind::Let:
    return print(*cast<LetItem>(item).let);
  case Item::Kind::Pipeline:
    return print(cast<PipelineItem>(item));
  case Item::Kind::Share:
    line("share ");
    llvm::interleaveComma(cast<ShareItem>(item).pipelines, os,
                          [&](const NameExpr *name) { os << name->name; });
    return place(item.loc);
  case Item::Kind::Cost:
    return printClauses("cost", item.loc, cast<CostItem>(item).clauses);
  case Item::Kind::Memory:
    return printClauses("memory", item.loc, cast<MemoryItem>(item).clauses);
  case Item::Kind::Model:
    return print(cast<ModelItem>(item));
  case Item::Kind::Def:
    return print(*cast<DefItem>(item).def);
  case Item::Kind::Timeline:
    line("timeline");
    place(item.loc);
    return print(cast<TimelineItem>(item).body);
  case Item::Kind::Greedy:
    line("greedy");
    place(item.loc);
    indent += 2;
    for (const GreedyClause &clause : cast<GreedyItem>(item).clauses)
      print(clause);
    indent -= 2;
    return;
  case Item::Kind::Rank:
    line("rank ") << cast<RankItem>(item).rank.name;
    place(item.loc);
    return print(cast<RankItem>(item).body);
  }
}

void TreePrinter::print(const PipelineItem &pipeline) {
  line("pipeline ") << pipeline.name.name;
  if (pipeline.isFamily()) {
    os << '(' << pipeline.member.name << " in ";
    printRange(*pipeline.begin, *pipeline.end);
    os << ')';
  }
  place(pipeline.loc);
  indent += 2;
  line("stages ");
  print(*pipeline.stages);
  place(pipeline.stages->loc);
  line("microbatches ");
  print(*pipeline.microbatches);
  place(pipeline.microbatches->loc);
  line("place ") << pipeline.placedStage.name << " -> ";
  print(*pipeline.placement);
  place(pipeline.placedStage.loc);
  indent -= 2;
}

void TreePrinter::printRange(const Expr &begin, const Expr &end) {
  print(begin);
  os << "..";
  print(end);
}

void TreePrinter::printClauses(StringRef word, SourceLoc loc, llvm::ArrayRef<MapClause> clauses) {
  line(word);
  place(loc);
  indent += 2;
  for (const MapClause &clause : clauses) {
    line(clause.name) << ' ';
    if (!clause.index.name.empty())
      os << clause.index.name << " -> ";
    print(*clause.value);
    place(clause.loc);
  }
  indent -= 2;
}

void TreePrinter::print(const ModelItem &model) {
  printClauses("model", model.loc, model.groups);
  indent += 2;
  for (const ReadsClause &clause : model.halves) {
    line(getKeyword(clause.half)) << " reads " << spellReads(clause.reads);
    place(clause.loc);
  }
  indent -= 2;
}

void TreePrinter::print(const OpPattern &pattern) {
  os << getKeyword(pattern.op);
  printChunks(pattern);
}

void TreePrinter::printChunks(const OpPattern &pattern) {
  StringRef separator = " of ";
  for (const Expr *chunk : pattern.chunks) {
    os << separator;
    print(*chunk);
    separator = " + ";
  }
}

void TreePrinter::print(const ChoicePattern &choice) {
  if (choice.members.size() == 1)
    return print(choice.members.front());
  os << "fused(";
  llvm::interleaveComma(choice.members, os, [&](const OpPattern &member) { print(member); });
  os << ')';
}

void TreePrinter::print(const GreedyClause &clause) {
  auto printRank = [&] {
    if (!clause.rank.name.empty())
      os << " on " << clause.rank.name;
  };
  switch (clause.kind) {
  case GreedyClause::Kind::For:
    line("for ") << clause.counter.name << " in ";
    printRange(*clause.begin, *clause.end);
    place(clause.loc);
    indent += 2;
    for (const GreedyClause &line : clause.lines)
      print(line);
    indent -= 2;
    return;
  case GreedyClause::Kind::Prefer:
    line("prefer ");
    llvm::interleaveComma(clause.choices, os, [&](const ChoicePattern &choice) { print(choice); });
    printRank();
    break;
  case GreedyClause::Kind::Limit:
    line("limit ") << getKeyword(clause.op.op) << ".." << getKeyword(clause.last);
    printChunks(clause.op);
    printRank();
    os << " <= ";
    print(*clause.bound);
    break;
  case GreedyClause::Kind::Until:
    line("until ");
    print(clause.op);
    printRank();
    os << " >= ";
    print(*clause.bound);
    break;
  }
  place(clause.loc);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void TreePrinter::print(const Block &block) {
  indent += 2;
  for (const Stmt *stmt : block.statements)
    print(*stmt);
  indent -= 2;
}

void TreePrinter::print(const Stmt &stmt) {
  switch (stmt.kind) {
  case Stmt::Kind::Let:
    return print(cast<LetStmt>(stmt));
  case Stmt::Kind::If:
    return printIf(cast<IfStmt>(stmt));
  case Stmt::Kind::Repeat: {
    const auto &repeat = cast<RepeatStmt>(stmt);
    line("repeat ");
    print(*repeat.count);
    if (!repeat.counter.name.empty())
      os << " as " << repeat.counter.name;
    place(stmt.loc);
    return print(repeat.body);
  }
  case Stmt::Kind::For: {
    const auto &loop = cast<ForStmt>(stmt);
    line("for ") << loop.counter.name << " in ";
    printRange(*loop.begin, *loop.end);
    place(stmt.loc);
    return print(loop.body);
  }
  case Stmt::Kind::Every:
    return print(cast<EveryStmt>(stmt));
  case Stmt::Kind::Phase:
    line("phase ");
    printQuoted(cast<PhaseStmt>(stmt).name, true);
    place(stmt.loc);
    return print(cast<PhaseStmt>(stmt).body);
  case Stmt::Kind::Op:
    return print(cast<OpStmt>(stmt));
  case Stmt::Kind::Fused:
    line("fused");
    printTime(cast<FusedStmt>(stmt).time);
    place(stmt.loc);
    return print(cast<FusedStmt>(stmt).body);
  case Stmt::Kind::Transfer:
    return print(cast<TransferStmt>(stmt));
  case Stmt::Kind::Call:
    line("") << cast<CallStmt>(stmt).callee << '(';
    print(cast<CallStmt>(stmt).arguments);
    os << ')';
    return place(stmt.loc);
  }
}

void TreePrinter::print(const LetStmt &let) {
  line(let.isTuple ? "let (" : "let ");
  llvm::interleaveComma(let.bindings, os, [&](const Binding &binding) { os << binding.name; });
  os << (let.isTuple ? ") = " : " = ");
  print(*let.value);
  place(let.loc);
}

void TreePrinter::printIf(const IfStmt &stmt) {
  line("if ");
  print(*stmt.condition);
  place(stmt.loc);
  print(stmt.thenBlock);
  if (stmt.elseBlock.statements.empty())
    return;
  line("else\n");
  print(stmt.elseBlock);
}

void TreePrinter::print(const EveryStmt &every) {
  line("every ");
  print(*every.period);
  os << " as " << every.counter.name;
  if (every.begin) {
    os << " in ";
    printRange(*every.begin, *every.end);
  }
  place(every.loc);
  print(every.body);
}

void TreePrinter::print(const TransferStmt &transfer) {
  line(transfer.isSend ? "send " : "recv ") << (transfer.isGrad ? "bwd " : "fwd ");
  print(*transfer.chunk);
  if (transfer.microbatch) {
    os << " @ ";
    print(*transfer.microbatch);
  }
  place(transfer.loc);
}

void TreePrinter::printTime(const Expr *time) {
  if (!time)
    return;
  os << " at ";
  print(*time);
}

void TreePrinter::print(const OpStmt &op) {
  line(getKeyword(op.op));
  if (op.chunk) {
    os << ' ';
    print(*op.chunk);
  }
  if (op.microbatch) {
    os << " @ ";
    print(*op.microbatch);
  }
  if (op.split) {
    os << " split (";
    print(*op.split);
    os << ')';
  }
  printTime(op.time);
  if (op.inGaps)
    os << " in gaps";
  place(op.loc);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

void TreePrinter::print(llvm::ArrayRef<Expr *> list) {
  llvm::interleaveComma(list, os, [&](const Expr *expr) { print(*expr); });
}

void TreePrinter::print(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
    os << cast<IntegerExpr>(expr).value;
    return;
  case Expr::Kind::Decimal:
    os << Costs::printTicks(cast<DecimalExpr>(expr).millionths);
    return;
  case Expr::Kind::Boolean:
    os << (cast<BooleanExpr>(expr).value ? "true" : "false");
    return;
  case Expr::Kind::Training:
    os << "training";
    return;
  case Expr::Kind::String:
    return print(cast<StringExpr>(expr));
  case Expr::Kind::Name:
    os << cast<NameExpr>(expr).name;
    return;
  case Expr::Kind::Negate:
    os << "(-";
    print(*cast<NegateExpr>(expr).operand);
    os << ')';
    return;
  case Expr::Kind::Not:
    os << "(not ";
    print(*cast<NotExpr>(expr).operand);
    os << ')';
    return;
  case Expr::Kind::Binary:
    os << '(';
    print(*cast<BinaryExpr>(expr).lhs);
    os << ' ' << getSpelling(cast<BinaryExpr>(expr).op) << ' ';
    print(*cast<BinaryExpr>(expr).rhs);
    os << ')';
    return;
  case Expr::Kind::If:
    os << "(if ";
    print(*cast<IfExpr>(expr).condition);
    os << " then ";
    print(*cast<IfExpr>(expr).thenValue);
    os << " else ";
    print(*cast<IfExpr>(expr).elseValue);
    os << ')';
    return;
  case Expr::Kind::Tuple:
    os << '(';
    print(cast<TupleExpr>(expr).elements);
    os << ')';
    return;
  case Expr::Kind::Call:
    os << cast<CallExpr>(expr).callee << '(';
    print(cast<CallExpr>(expr).arguments);
    os << ')';
    return;
  case Expr::Kind::MinMax:
    os << (cast<MinMaxExpr>(expr).isMax ? "max(" : "min(");
    print(cast<MinMaxExpr>(expr).arguments);
    os << ')';
    return;
  case Expr::Kind::Index:
    print(*cast<IndexExpr>(expr).base);
    os << '[';
    print(*cast<IndexExpr>(expr).index);
    os << ']';
    return;
  case Expr::Kind::Stage:
    print(*cast<StageExpr>(expr).base);
    os << ".stage(";
    print(*cast<StageExpr>(expr).stage);
    os << ')';
    return;
  }
}

void TreePrinter::printQuoted(StringRef text, bool quotes) {
  if (quotes)
    os << '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      os << '\\';
    if (c == '{' || c == '}')
      os << c;
    os << c;
  }
  if (quotes)
    os << '"';
}

void TreePrinter::print(const StringExpr &string) {
  os << '"';
  for (size_t i = 0; i < string.texts.size(); ++i) {
    printQuoted(string.texts[i], /*quotes=*/false);
    if (i == string.values.size())
      break;
    os << '{';
    print(*string.values[i]);
    os << '}';
  }
  os << '"';
}

void frontend::printTree(const FileDecl &file, llvm::raw_ostream &os) {
  TreePrinter(os).print(file);
}
