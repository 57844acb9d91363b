//===- JsonSyntax.cpp - what is wrong with a text that should be JSON -------===//

#include "JsonSyntax.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace dualpipe::runtime {

using nlohmann::json;

static constexpr size_t kMaxDepth = 64;

namespace {

/// Finds where a text stops being JSON; takes every value as it comes.
class SyntaxCheck : public nlohmann::json_sax<json> {
public:
  explicit SyntaxCheck(std::string_view text) : text(text) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override;
  bool parse_error(size_t at, const std::string &token, const json::exception &) override;

  Status status = Status::success();

private:
  /// An object, or a list without names.
  struct Level {
    std::set<std::string> names;
    std::string last;
  };
  bool open();
  bool close() {
    levels.pop_back();
    return true;
  }
  std::string getPlace() const;

  const std::string_view text;
  std::vector<Level> levels;
};

} // namespace

/// The names that lead to the innermost value.
std::string SyntaxCheck::getPlace() const {
  std::string place;
  for (const Level &level : levels)
    if (!level.last.empty())
      place += (place.empty() ? "" : ".") + level.last;
  return place;
}

bool SyntaxCheck::open() {
  levels.emplace_back();
  if (levels.size() <= kMaxDepth)
    return true;
  status = Status::failure(
      fmt::format("lists and objects are more than {} deep, expected less", kMaxDepth));
  return false;
}

bool SyntaxCheck::key(string_t &name) {
  levels.back().last = name;
  if (levels.back().names.insert(name).second)
    return true;
  status = Status::failure(
      fmt::format("'{}' is given twice in an object, expected it once", getPlace()));
  return false;
}

bool SyntaxCheck::parse_error(size_t position, const std::string &token, const json::exception &) {
  const size_t at = std::min(position == 0 ? 0 : position - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line = size_t(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t column = at - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1) + 1;
  status = Status::failure(
      fmt::format("line {}, column {}: no JSON, at '{}'", line, column, token.substr(0, 40)));
  return false;
}

Status checkJsonSyntax(std::string_view text) {
  SyntaxCheck check(text);
  json::sax_parse(text, &check);
  return check.status;
}

} // namespace dualpipe::runtime
