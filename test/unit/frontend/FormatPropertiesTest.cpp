//===- FormatPropertiesTest.cpp - what holds for the layout of any text ----===//
//
// A layout has the tokens and comments of its text, and is its own layout.
//
//===----------------------------------------------------------------------===//

#include "Examples.h"
#include "Harness.h"
#include "dualpipe/Frontend/Format.h"
#include "lib/Frontend/Lexer.h"

#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <random>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;

namespace {

/// The tokens of a text, and the comments between them.
struct Content {
  std::vector<std::string> tokens, comments;
  bool valid = true;
};

void collectComments(StringRef gap, std::vector<std::string> &comments) {
  for (size_t at = gap.find("//"); at != StringRef::npos; at = gap.find("//")) {
    gap = gap.drop_front(at);
    StringRef comment = gap.take_until([](char c) { return c == '\n'; });
    comments.push_back(comment.rtrim().str());
    gap = gap.drop_front(comment.size());
  }
}

Content readContent(StringRef text) {
  Content content;
  DiagnosticSink sink;
  Lexer lexer(text, {0, 1, 1}, sink);
  const char *end = text.begin();
  for (;;) {
    Token token = lexer.next();
    collectComments(StringRef(end, token.spelling.begin() - end), content.comments);
    end = token.spelling.end();
    if (token.kind == TokenKind::EndOfFile)
      break;
    content.tokens.push_back(token.spelling.str());
  }
  content.valid = !sink.hasErrors();
  return content;
}

/// Lays out a text, and checks what holds for every layout. Returns the text where it has none.
std::string layOut(const std::string &text) {
  Content before = readContent(text);
  DiagnosticSink sink;
  llvm::FailureOr<std::string> once = formatText(text, sink);
  EXPECT_EQ(llvm::succeeded(once), before.valid) << text;
  if (llvm::failed(once))
    return text;
  Content after = readContent(*once);
  EXPECT_EQ(after.tokens, before.tokens) << text;
  EXPECT_EQ(after.comments, before.comments) << text;
  llvm::FailureOr<std::string> twice = formatText(*once, sink);
  EXPECT_EQ(llvm::succeeded(twice) ? *twice : "", *once) << "of\n" << text;
  return *once;
}

//===----------------------------------------------------------------------===//
// Other layouts of a text
//===----------------------------------------------------------------------===//

class Mangler {
public:
  explicit Mangler(unsigned seed) : random(seed) {}

  /// Other blanks and more blank lines, with the same ends of lines.
  std::string changeBlanks(StringRef text);
  /// Ends of lines where they mean nothing: in brackets, after operators, before `{`.
  std::string changeLines(StringRef text);
  std::string makeSoup(unsigned tokens);

private:
  std::string getBlanks(unsigned least) {
    std::string blanks;
    for (unsigned n = least + random() % 4; n != 0; --n)
      blanks += random() % 4 == 0 ? '\t' : ' ';
    return blanks;
  }

  std::mt19937 random;
};

std::string Mangler::changeBlanks(StringRef text) {
  std::string out;
  const char *end = text.begin();
  DiagnosticSink sink;
  Lexer lexer(text, {0, 1, 1}, sink);
  for (Token token = lexer.next();; token = lexer.next()) {
    StringRef gap(end, token.spelling.begin() - end);
    for (StringRef line : llvm::split(gap, '\n')) {
      // Where there was nothing there may be something, and the other way round for indentation.
      StringRef comment = line.ltrim();
      bool first = line.begin() == gap.begin();
      out += getBlanks(first && !line.empty());
      out += comment;
      if (line.end() != gap.end())
        out += random() % 3 == 0 && comment.empty() && !first ? "\n \n" : "\n";
    }
    out += token.spelling;
    end = token.spelling.end();
    if (token.kind == TokenKind::EndOfFile)
      return out;
  }
}

std::string Mangler::changeLines(StringRef text) {
  std::string out;
  const char *end = text.begin();
  DiagnosticSink sink;
  Lexer lexer(text, {0, 1, 1}, sink);
  Token previous;
  unsigned brackets = 0;
  for (Token token = lexer.next();; token = lexer.next()) {
    StringRef gap(end, token.spelling.begin() - end);
    bool isOperator = previous.kind >= TokenKind::Assign && previous.kind <= TokenKind::Slash;
    bool mayBreak = brackets != 0 || isOperator || token.kind == TokenKind::LeftBrace ||
                    previous.kind == TokenKind::LeftBrace || token.kind == TokenKind::RightBrace ||
                    previous.kind == TokenKind::Semicolon;
    out += gap;
    if (mayBreak && !gap.contains('\n') && random() % 4 == 0)
      out += random() % 2 == 0 ? "\n" : " // here\n\n";
    out += token.spelling;
    if (token.kind == TokenKind::LeftParen || token.kind == TokenKind::LeftBracket)
      ++brackets;
    if (token.kind == TokenKind::RightParen || token.kind == TokenKind::RightBracket)
      --brackets;
    end = token.spelling.end();
    previous = token;
    if (token.kind == TokenKind::EndOfFile)
      return out;
  }
}

std::string Mangler::makeSoup(unsigned tokens) {
  static const char *const pieces[] = {
#define PUNCTUATION(Name, Spelling) Spelling,
#define KEYWORD(Name, Spelling) Spelling,
#include "lib/Frontend/TokenKinds.def"
      "x", "at", "of", "17", "\"text\"", "\xC3\xA4", "// comment\n", "//\n",
      // These often, so that there are blocks and lines.
      "{", "}", "{", "}", "(", ")", ";", "\n", "\n", "\n\n", "\n", "let", "phase", "require"};
  std::string soup;
  while (tokens-- != 0) {
    soup += pieces[random() % std::size(pieces)];
    soup += random() % 3 == 0 ? "" : getBlanks(1);
  }
  return soup;
}

/// A tree without its places.
std::string dropPlaces(const std::string &tree) {
  std::string out;
  for (StringRef line : llvm::split(tree, '\n'))
    out += line.substr(0, line.rfind("  @")).str() + "\n";
  return out;
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

TEST(FormatProperties, EveryExampleIsLaidOutAlready) {
  for (const auto &[name, text] : readExamples())
    EXPECT_EQ(layOut(text), text) << name;
}

TEST(FormatProperties, TheExampleOfThePageIsLaidOutAlready) {
  std::string page = readFile(std::string(DUALPIPE_SOURCE_DIR) + "/docs/tools.md");
  size_t begin = page.find("\n```pipe\n") + 9;
  std::string text = page.substr(begin, page.find("```", begin) - begin);
  EXPECT_NE(text.find("schedule columns"), std::string::npos);
  EXPECT_EQ(layOut(text), text);
}

TEST(FormatProperties, BlanksDoNotChangeALayout) {
  Mangler mangler(7);
  for (const auto &[name, text] : readExamples())
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(layOut(mangler.changeBlanks(text)), text) << name;
}

TEST(FormatProperties, ALayoutMeansTheSame) {
  Mangler mangler(8);
  Files files = readExamples();
  for (const auto &[name, text] : readExamples()) {
    files["main.pipe"] = text;
    Outcome expected = compileFiles(files, sized(4, 8));
    for (int i = 0; i < 10; ++i) {
      std::string mangled = mangler.changeLines(text);
      for (const std::string &other : {mangled, layOut(mangled)}) {
        files["main.pipe"] = other;
        Outcome run = compileFiles(files, sized(4, 8));
        EXPECT_EQ(dropPlaces(run.tree), dropPlaces(expected.tree)) << name << "\n" << other;
        ASSERT_EQ(run.ok, expected.ok) << name << "\n" << other << run.findings;
        EXPECT_EQ(formatOrders(run.schedule), formatOrders(expected.schedule)) << name;
      }
    }
  }
}

TEST(FormatProperties, AnySequenceOfTokensIsLaidOut) {
  Mangler mangler(9);
  for (int i = 0; i < 6000; ++i)
    layOut(mangler.makeSoup(1 + i % 60));
}

TEST(FormatProperties, EveryTruncationIsLaidOut) {
  for (const auto &[name, text] : readExamples())
    for (size_t length = text.find("\npipe 1\n"); length <= text.size(); ++length)
      layOut(text.substr(0, length));
}

} // namespace
