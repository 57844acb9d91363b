//===- DescribeJson.h - a JSON value in a message ---------------------------===//

#ifndef DUALPIPE_SUPPORT_DESCRIBEJSON_H
#define DUALPIPE_SUPPORT_DESCRIBEJSON_H

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

namespace dualpipe {

/// A value as a message shows it: short, on one line, and without its parts, which may be many or
/// deep.
inline std::string describeJson(const nlohmann::json &value) {
  constexpr size_t kMaxText = 40;
  if (value.is_object())
    return value.empty() ? "{}" : fmt::format("an object of {}", value.size());
  if (value.is_array())
    return value.empty() ? "[]" : fmt::format("a list of {}", value.size());
  const auto dump = [](const nlohmann::json &simple) {
    return simple.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (!value.is_string())
    return dump(value);
  const auto &text = value.get_ref<const std::string &>();
  return text.size() <= kMaxText ? dump(value) : dump(text.substr(0, kMaxText)) + "...";
}

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_DESCRIBEJSON_H
