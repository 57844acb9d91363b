//===- ParseActions.cpp - the cells of a schedule file ----------------------===//
//
//   cell     := "" | simple | compound
//   simple   := STAGE TYPE [MICROBATCH]
//   compound := "(" simple { ";" simple } ")" "OVERLAP_F_B"
//
// Cells are separated by commas, blanks around them are ignored. A cell must be an
// action as a whole: readers that take a valid prefix run something else than was
// written.
//
//===----------------------------------------------------------------------===//

#include "Actions.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

using namespace dualpipe;
using namespace dualpipe::torch;

namespace {

struct TypeName {
  std::string_view name;
  ActionType type;
  bool hasMicrobatch;
};

constexpr TypeName kTypes[] = {
    {"F", ActionType::F, true},
    {"I", ActionType::I, true},
    {"W", ActionType::W, true},
    {"B", ActionType::B, true},
    {"BW", ActionType::BW, true},
    {"SEND_F", ActionType::SendF, true},
    {"RECV_F", ActionType::RecvF, true},
    {"SEND_B", ActionType::SendB, true},
    {"RECV_B", ActionType::RecvB, true},
    {"UNSHARD", ActionType::Unshard, false},
    {"RESHARD", ActionType::Reshard, false},
    {"REDUCE_GRAD", ActionType::ReduceGrad, false},
};

constexpr std::string_view kExpectedTypes =
    "F, I, W, B, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD or REDUCE_GRAD";
constexpr std::string_view kCompoundEnd = "OVERLAP_F_B";
/// Members of a compound are compared in pairs.
constexpr size_t kMaxMembers = 64;
/// As many as a `.pipe` file may be compiled for.
constexpr uint32_t kMaxRanks = 1u << 16;
/// After this many errors the rest of the file is not read: it is no schedule file.
constexpr size_t kMaxErrors = 20;

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isTypeLetter(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }

/// `text` without blanks around it: a part of it even where nothing is left, since places are
/// told by where a part begins.
std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Text of the file for a message: short, and with nothing that a terminal obeys.
std::string quote(std::string_view text) {
  constexpr size_t kMaxShown = 40;
  std::string out = "'";
  for (char c : text.substr(0, kMaxShown)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > kMaxShown ? "...'" : "'");
}

class ActionParser {
public:
  ActionParser(std::string_view text, DiagnosticSink &sink) : text(text), sink(sink) {}
  Actions run();

private:
  void parseLine(std::string_view line);
  void parseCell(std::string_view cell);
  void parseCompound(std::string_view cell);
  std::optional<Action> parseSimple(std::string_view simple);
  std::optional<uint32_t> parseNumber(std::string_view &rest);
  void fail(std::string_view where, const std::string &message);
  SourceLoc getLoc(std::string_view where) const {
    return {0, rank + 1, uint32_t(where.data() - lineBegin) + 1};
  }

  std::string_view text;
  DiagnosticSink &sink;
  Actions actions;
  uint32_t rank = 0, column = 0, nextGroup = 0;
  const char *lineBegin = nullptr;
  std::string_view cell; ///< the whole cell that is being read
};

} // namespace

std::string torch::print(const Action &action) {
  for (const TypeName &entry : kTypes)
    if (entry.type == action.type)
      return fmt::format("{}{}{}", action.stage, entry.name,
                         entry.hasMicrobatch ? std::to_string(action.microbatch) : "");
  return "";
}

std::string torch::describe(const Action &action) {
  return fmt::format("rank {}, column {}: '{}'", action.rank, action.column, print(action));
}

void ActionParser::fail(std::string_view where, const std::string &message) {
  sink.error(getLoc(where),
             fmt::format("rank {}, column {}: {}: {}", rank, column, quote(cell), message));
}

/// Takes digits off the front of `rest`; reports a number that is too large.
std::optional<uint32_t> ActionParser::parseNumber(std::string_view &rest) {
  std::string_view digits =
      rest.substr(0, std::find_if_not(rest.begin(), rest.end(), isDigit) - rest.begin());
  uint64_t value = 0;
  for (char c : digits)
    value = std::min<uint64_t>(value * 10 + (c - '0'), uint64_t(kMaxNumber) + 1);
  if (value > kMaxNumber) {
    fail(digits, fmt::format("{} is too large, expected at most {}", quote(digits), kMaxNumber));
    return std::nullopt;
  }
  rest.remove_prefix(digits.size());
  return uint32_t(value);
}

std::optional<Action> ActionParser::parseSimple(std::string_view simple) {
  auto reject = [&](std::string_view where, const std::string &message) {
    fail(where, message);
    return std::nullopt;
  };
  std::string_view rest = simple;
  if (rest.empty() || !isDigit(rest.front()))
    return reject(rest, fmt::format("expected the number of a stage, then {}", kExpectedTypes));
  std::optional<uint32_t> stage = parseNumber(rest);
  if (!stage)
    return std::nullopt;

  std::string_view name =
      rest.substr(0, std::find_if_not(rest.begin(), rest.end(), isTypeLetter) - rest.begin());
  const TypeName *type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                      [&](const TypeName &entry) { return entry.name == name; });
  if (type == std::end(kTypes))
    return reject(rest, fmt::format("unknown action {}, expected {}",
                                    quote(name.empty() ? rest : name), kExpectedTypes));
  rest.remove_prefix(name.size());

  bool isNumbered = !rest.empty() && isDigit(rest.front());
  if (type->hasMicrobatch && !isNumbered)
    return reject(rest, fmt::format("{} needs the number of a micro-batch", name));
  if (!type->hasMicrobatch && isNumbered)
    return reject(rest, fmt::format("{} takes no micro-batch", name));
  std::optional<uint32_t> microbatch = parseNumber(rest);
  if (!microbatch)
    return std::nullopt;
  if (!rest.empty())
    return reject(rest, fmt::format("unexpected {} after {}", quote(rest),
                                    quote(simple.substr(0, simple.size() - rest.size()))));
  return Action{type->type, *stage, *microbatch, Action::kAlone, rank, column, getLoc(simple)};
}

void ActionParser::parseCompound(std::string_view cell) {
  size_t close = cell.find(')');
  if (close == std::string_view::npos || cell.substr(close + 1) != kCompoundEnd)
    return fail(cell,
                fmt::format("expected ')' and then {} at the end of a compound", kCompoundEnd));
  std::string_view rest = cell.substr(1, close - 1);
  std::vector<Action> members;
  for (bool isLast = false; !isLast;) {
    size_t end = std::min(rest.find(';'), rest.size());
    isLast = end == rest.size();
    std::string_view simple = trim(rest.substr(0, end));
    rest.remove_prefix(isLast ? end : end + 1);
    std::optional<Action> member = parseSimple(simple);
    if (!member)
      return;
    if (!isCompute(member->type))
      return fail(simple, "only F, I, W and B stand in a compound");
    member->group = nextGroup;
    members.push_back(*member);
  }
  if (members.size() < 2 || members.size() > kMaxMembers)
    return fail(cell, fmt::format("a compound of {}: expected from 2 to {} actions", members.size(),
                                  kMaxMembers));
  ++nextGroup;
  actions[rank].insert(actions[rank].end(), members.begin(), members.end());
}

void ActionParser::parseCell(std::string_view text) {
  cell = text;
  if (size_t at = cell.find_first_of("\"'"); at != std::string_view::npos)
    return fail(cell.substr(at), "quotes do not belong in a schedule file");
  if (cell.front() == '(')
    return parseCompound(cell);
  if (std::optional<Action> action = parseSimple(cell))
    actions[rank].push_back(*action);
}

void ActionParser::parseLine(std::string_view line) {
  lineBegin = line.data();
  column = nextGroup = 0;
  actions.emplace_back();
  for (bool isLast = false; !isLast && sink.numErrors() < kMaxErrors;) {
    size_t end = std::min(line.find(','), line.size());
    isLast = end == line.size();
    ++column;
    std::string_view text = trim(line.substr(0, end));
    if (!text.empty())
      parseCell(text);
    line.remove_prefix(isLast ? end : end + 1);
  }
}

Actions ActionParser::run() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    text.remove_prefix(kByteOrderMark.size());
  // Blank lines at the end are no ranks.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);

  for (bool isLast = text.empty(); !isLast && sink.numErrors() < kMaxErrors; ++rank) {
    if (rank == kMaxRanks) {
      sink.error({0, rank + 1, 1},
                 fmt::format("the file has more than {} lines, one for each rank: "
                             "expected at most {} ranks",
                             kMaxRanks, kMaxRanks));
      break;
    }
    size_t end = std::min(text.find('\n'), text.size());
    isLast = end == text.size();
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    parseLine(line);
    text.remove_prefix(isLast ? end : end + 1);
  }
  if (sink.numErrors() >= kMaxErrors)
    sink.error({0, rank, 1}, "too many errors: the rest of the file is not read");
  return std::move(actions);
}

Actions torch::parseActions(std::string_view text, DiagnosticSink &sink) {
  return ActionParser(text, sink).run();
}
