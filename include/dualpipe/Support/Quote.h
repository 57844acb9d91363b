//===- Quote.h - text inside other texts ------------------------------------===//

#ifndef DUALPIPE_SUPPORT_QUOTE_H
#define DUALPIPE_SUPPORT_QUOTE_H

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace dualpipe {

/// `text` as a JSON string, with its quotes. It must be UTF-8. Safe inside a `<script>` of a page:
/// no `<` is left.
inline std::string quoteJson(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += '\\';
    if (code < 0x20 || c == '<')
      quoted += fmt::format("\\u{:04x}", unsigned(code));
    else
      quoted += c;
  }
  return quoted + '"';
}

/// `text` as the content or an attribute's value of XML or HTML.
inline std::string escapeXml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      escaped += ' '; // XML has no other control characters
    else
      escaped += c;
  }
  return escaped;
}

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_QUOTE_H
