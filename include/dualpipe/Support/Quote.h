//===- Quote.h - text inside other texts ------------------------------------===//

#ifndef DUALPIPE_SUPPORT_QUOTE_H
#define DUALPIPE_SUPPORT_QUOTE_H

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace dualpipe {

/// The bytes of the character that `text` begins with; 0 where they are not UTF-8. "The Unicode
/// Standard", version 15, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF.
inline size_t getUtf8Length(std::string_view text) {
  const auto isByte = [&](size_t at, unsigned least, unsigned most) {
    const unsigned byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
    return byte >= least && byte <= most;
  };
  if (isByte(0, 0x00, 0x7F))
    return 1;
  if (isByte(0, 0xC2, 0xDF))
    return isByte(1, 0x80, 0xBF) ? 2 : 0;
  const unsigned first = static_cast<unsigned char>(text[0]);
  if (isByte(0, 0xE0, 0xEF)) {
    const bool second = isByte(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return second && isByte(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (isByte(0, 0xF0, 0xF4)) {
    const bool second = isByte(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && isByte(2, 0x80, 0xBF) && isByte(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// U+FFFD, which stands for what cannot be shown.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// `text` with U+FFFD for every byte that is not UTF-8: names of files can be any bytes, JSON and
/// XML cannot.
inline std::string toUtf8(std::string_view text) {
  std::string good;
  while (!text.empty()) {
    const size_t length = getUtf8Length(text);
    good += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return good;
}

/// `text` as a JSON string, with its quotes and in UTF-8. Safe inside a `<script>` of a page:
/// no `<` is left.
inline std::string quoteJson(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : toUtf8(text)) {
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

/// `text` as the content or an attribute's value of XML or HTML, in UTF-8.
inline std::string escapeXml(std::string_view text) {
  std::string escaped;
  const std::string utf8 = toUtf8(text);
  for (size_t i = 0; i != utf8.size(); ++i) {
    const char c = utf8[i];
    const std::string_view three = std::string_view(utf8).substr(i, 3);
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
    else if (three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF") {
      escaped += kReplacement; // nor U+FFFE and U+FFFF
      i += 2;
    } else
      escaped += c;
  }
  return escaped;
}

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_QUOTE_H
