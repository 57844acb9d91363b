//===- Names.cpp - names that the language can spell ---------------------------===//

#include "Names.h"

#include <algorithm>

using namespace dualpipe::pipe_text;

static bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool isNameChar(char c) { return isLetter(c) || (c >= '0' && c <= '9'); }

static bool isKeyword(std::string_view text) {
  static constexpr std::string_view keywords[] = {
#define KEYWORD(Name, Spelling) Spelling,
#include "../../Frontend/TokenKinds.def"
  };
  return std::find(std::begin(keywords), std::end(keywords), text) != std::end(keywords);
}

bool dualpipe::pipe_text::isName(std::string_view text) {
  return !text.empty() && isLetter(text[0]) && std::all_of(text.begin(), text.end(), isNameChar) &&
         !isKeyword(text);
}

std::string Names::declare(std::string_view text) {
  std::string name(text);
  std::replace_if(name.begin(), name.end(), [](char c) { return !isNameChar(c); }, '_');
  if (name.empty() || !isLetter(name[0]))
    name.insert(0, "_");
  while (!isName(name) || !used.insert(name).second)
    name += '_';
  return name;
}

std::string dualpipe::pipe_text::quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
    if (c == '{' || c == '}')
      quoted += c;
  }
  return quoted + '"';
}
