//===- QuoteTest.cpp - any bytes inside JSON and XML ------------------------===//

#include "dualpipe/Support/Quote.h"

#include <gtest/gtest.h>

using namespace dualpipe;

namespace {

TEST(Quote, CharactersStay) {
  // The first and the last of every length, and those around the surrogates.
  for (const char *text : {"", "a\x7F", "\u0080\u07FF", "\u0800\uD7FF\uE000\uFFFD",
                           "\U00010000\U0010FFFF", "fährt Ω 双管 🚇"}) {
    EXPECT_EQ(toUtf8(text), text);
    EXPECT_EQ(escapeXml(text), text);
  }
}

TEST(Quote, BytesThatAreNoUtf8) {
  const auto replaced = [](int count) {
    std::string text;
    for (int i = 0; i != count; ++i)
      text += "\uFFFD";
    return text;
  };
  EXPECT_EQ(toUtf8("f\xFF.pipe"), "f\uFFFD.pipe");
  EXPECT_EQ(toUtf8("\x80"), replaced(1));             // goes on with nothing
  EXPECT_EQ(toUtf8("\xC3"), replaced(1));             // cut off
  EXPECT_EQ(toUtf8("\xE5\x8F"), replaced(2));         // cut off
  EXPECT_EQ(toUtf8("\xF0\x9F\x9A"), replaced(3));     // cut off
  EXPECT_EQ(toUtf8("\xC0\xAF"), replaced(2));         // an overlong '/'
  EXPECT_EQ(toUtf8("\xE0\x80\xAF"), replaced(3));     // the same
  EXPECT_EQ(toUtf8("\xF0\x80\x80\xAF"), replaced(4)); // the same
  EXPECT_EQ(toUtf8("\xED\xA0\x80"), replaced(3));     // a surrogate
  EXPECT_EQ(toUtf8("\xF4\x90\x80\x80"), replaced(4)); // past U+10FFFF
  EXPECT_EQ(toUtf8("\xC3(\xC3\xA4"), "\uFFFD(ä");     // goes on after it
}

TEST(Quote, Json) { EXPECT_EQ(quoteJson("a\"\\\n<\xFF"), "\"a\\\"\\\\\\u000a\\u003c\uFFFD\""); }

TEST(Quote, Xml) {
  EXPECT_EQ(escapeXml("<a b=\"&\">\t\n\x01\xFF"), "&lt;a b=&quot;&amp;&quot;&gt;\t\n \uFFFD");
  // Characters, but none of XML.
  EXPECT_EQ(escapeXml("a\uFFFEb\uFFFFc"), "a\uFFFDb\uFFFDc");
}

} // namespace
