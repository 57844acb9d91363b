//===- FormatTest.cpp - the layout of each construct -----------------------===//

#include "dualpipe/Frontend/Format.h"
#include "Harness.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// The layout of a text that has one.
std::string formatted(const std::string &text) {
  DiagnosticSink sink;
  llvm::FailureOr<std::string> result = formatText(text, sink);
  EXPECT_FALSE(sink.hasErrors()) << sink.diagnostics().front().message;
  return llvm::succeeded(result) ? *result : "";
}

/// The findings of a text that has no layout.
std::string findingsOf(const std::string &text, const Limits &limits = {}) {
  DiagnosticSink sink;
  EXPECT_TRUE(llvm::failed(formatText(text, sink, limits)));
  std::string findings;
  for (const Diagnostic &found : sink.diagnostics())
    findings += std::to_string(found.loc.line) + ":" + std::to_string(found.loc.column) + ": " +
                found.message + "\n";
  return findings;
}

/// What stays as it is.
void expectStays(const std::string &text) { EXPECT_EQ(formatted(text), text); }

TEST(Format, BlanksBetweenTokens) {
  EXPECT_EQ(formatted("let x=min( a,b )+f (c)*t [ 0 ] - 2"),
            "let x = min(a, b) + f(c) * t[0] - 2\n");
  EXPECT_EQ(formatted("for i in 0 .. P-1{fwd c@i;bwd p . stage ( s )split(i>=2)}"),
            "for i in 0..P - 1 { fwd c @ i; bwd p.stage(s) split (i >= 2) }\n");
  EXPECT_EQ(formatted("let( a,b )=if(c)then(1,2)else(3,4)"),
            "let (a, b) = if (c) then (1, 2) else (3, 4)\n");
  EXPECT_EQ(formatted("place s->if s<P then s else 2*P-1-s"),
            "place s -> if s < P then s else 2 * P - 1 - s\n");
  EXPECT_EQ(formatted("fused( a,b )"), "fused(a, b)\n");
  EXPECT_EQ(formatted("fused{}"), "fused {}\n");
}

TEST(Format, AMinusIsASignWhereNoValueStandsBeforeIt) {
  EXPECT_EQ(formatted("let x = - 1 - - y"), "let x = -1 - -y\n");
  EXPECT_EQ(formatted("f(- 1, a[- 2])"), "f(-1, a[-2])\n");
  EXPECT_EQ(formatted("place s -> - s+P"), "place s -> -s + P\n");
  EXPECT_EQ(formatted("fwd c @ i at - 1"), "fwd c @ i at -1\n");
  EXPECT_EQ(formatted("not - 1"), "not -1\n");
}

TEST(Format, WordsThatWaitForAValueTakeNoArguments) {
  EXPECT_EQ(formatted("fwd c at(i+1)"), "fwd c at (i + 1)\n");
  EXPECT_EQ(formatted("prefer bwd of v [1],fwd of(v) on r"),
            "prefer bwd of v[1], fwd of (v) on r\n");
  EXPECT_EQ(formatted("limit fwd .. bwd on r<=P-r"), "limit fwd..bwd on r <= P - r\n");
}

TEST(Format, TokensThatWouldMergeStayApart) {
  for (const char *text : {"- >", ". .", ". ..", "= =", "< =", "> =", "/ /", "a b", "1 a", "1 .",
                           ". 1", "= ==", "< =="})
    EXPECT_EQ(formatted(text), std::string(text) + "\n");
}

TEST(Format, LinesAreIndentedByBlocks) {
  EXPECT_EQ(formatted("rank r {\nfwd a\n    if c {\nbwd a\n}\n}"),
            "rank r {\n  fwd a\n  if c {\n    bwd a\n  }\n}\n");
}

TEST(Format, ABlockStandsOnOneLineOrHasItsBracesAtTheEnds) {
  expectStays("rank r { fwd a; bwd a }\n");
  EXPECT_EQ(formatted("rank r { fwd a\nbwd a }"), "rank r {\n  fwd a\n  bwd a\n}\n");
  EXPECT_EQ(formatted("rank r { repeat 2 { fwd a\n} }"),
            "rank r {\n  repeat 2 {\n    fwd a\n  }\n}\n");
  EXPECT_EQ(formatted("rank r\n\n{ fwd a }"), "rank r { fwd a }\n");
  EXPECT_EQ(formatted("rank r // why\n{ fwd a }"),
            "rank r" + std::string(46, ' ') + "// why\n{ fwd a }\n");
  EXPECT_EQ(formatted("rank r {\n}"), "rank r {}\n");
}

TEST(Format, ElseFollowsABlockOfSeveralLines) {
  EXPECT_EQ(formatted("if a {\nfwd b\n}\nelse if c {\nbwd b\n}\nelse { fwd b }"),
            "if a {\n  fwd b\n} else if c {\n  bwd b\n} else { fwd b }\n");
  expectStays("if a { fwd b }\nelse { bwd b }\n");
}

TEST(Format, ABlockThatIsTooLongIsOpened) {
  std::string ops = "fwd " + std::string(40, 'x') + "; bwd " + std::string(40, 'y');
  EXPECT_EQ(formatted("phase \"all\" { repeat 2 { " + ops + " } }"),
            "phase \"all\" {\n  repeat 2 {\n    " + ops + "\n  }\n}\n");
  // An `else` of its own line then follows the block, as behind any other.
  EXPECT_EQ(formatted("if a { " + ops + "; fwd z }\nelse { fwd b }"),
            "if a {\n  " + ops + "; fwd z\n} else { fwd b }\n");
  // What has no blocks stays long.
  expectStays("f(" + std::string(120, 'x') + ")\n");
}

TEST(Format, FurtherLinesOfAStatementStandUnderItsValue) {
  EXPECT_EQ(formatted("let total = M +\n0"), "let total = M +\n            0\n");
  EXPECT_EQ(formatted("repeat min(M,\ntotal) { f(p) }"),
            "repeat min(M,\n           total) { f(p) }\n");
  EXPECT_EQ(formatted("f(\na,\nb\n)"), "f(\n    a,\n    b\n)\n");
  EXPECT_EQ(formatted("require a and\nb"), "require a and\n    b\n");
  EXPECT_EQ(formatted("let x = if a\nthen b\nelse c"),
            "let x = if a\n        then b\n        else c\n");
}

TEST(Format, BlankLinesAreKeptButNotAtTheEndsOfBlocks) {
  EXPECT_EQ(formatted("\n\npipe 1\n\n\n\nrank r {\n\n  fwd a\n\n\n  bwd a\n\n}\n\n\n"),
            "pipe 1\n\nrank r {\n  fwd a\n\n  bwd a\n}\n");
}

TEST(Format, BracesOfOneKeywordAreAligned) {
  EXPECT_EQ(formatted("phase \"a\" { repeat 1 { fwd a } }\n"
                      "phase \"longer\" { repeat 100 { fwd a } }\n"),
            "phase \"a\"      { repeat 1   { fwd a } }\n"
            "phase \"longer\" { repeat 100 { fwd a } }\n");
  // Over a block of several lines, which is not aligned itself.
  expectStays("phase \"a\"   { fwd a }\nphase \"b\" {\n  fwd a\n}\nphase \"ccc\" { fwd a }\n");
  // Not over another statement, a blank line or a comment.
  expectStays("phase \"a\" { fwd a }\nfwd a\nphase \"bbb\" { fwd a }\n");
  expectStays("phase \"a\" { fwd a }\n\nphase \"bbb\" { fwd a }\n");
  expectStays("phase \"a\" { fwd a }\n// why\nphase \"bbb\" { fwd a }\n");
  expectStays("if a { fwd a }\nif bbb { fwd a }\n");
}

TEST(Format, NamesAndMessagesAreAligned) {
  EXPECT_EQ(formatted("let a = 1\nlet long = 2\n"), "let a    = 1\nlet long = 2\n");
  EXPECT_EQ(formatted("require a \"x\"\nrequire long \"y\"\n"),
            "require a    \"x\"\nrequire long \"y\"\n");
}

TEST(Format, LimitsAndOpsWithTimesAreAligned) {
  EXPECT_EQ(formatted("limit fwd..bwd of p on r <= 2\nlimit fwd..bwd_weight on r <= P\n"),
            "limit fwd..bwd        of p on r <= 2\nlimit fwd..bwd_weight on r <= P\n");
  EXPECT_EQ(formatted("fwd p.stage(s) @ i at s\nbwd_input p.stage(s) @ i at -s\n"
                      "bwd_weight p.stage(s) @ i in gaps\n"),
            "fwd        p.stage(s) @ i at s\nbwd_input  p.stage(s) @ i at -s\n"
            "bwd_weight p.stage(s) @ i in gaps\n");
  // Ops of a program are not.
  expectStays("fwd p\nbwd_input p\n");
}

TEST(Format, SectionsOfASchedule) {
  EXPECT_EQ(formatted("timeline{every 6 as i in 0 .. M{fused{fwd a @ i;bwd b @ j}at 7}}"),
            "timeline { every 6 as i in 0..M { fused { fwd a @ i; bwd b @ j } at 7 } }\n");
  EXPECT_EQ(formatted("cost{fwd 1;transfer 0.5;bwd s->if s==0 then 2.5 else 1}"),
            "cost { fwd 1; transfer 0.5; bwd s -> if s == 0 then 2.5 else 1 }\n");
  EXPECT_EQ(formatted("schedule s(ranks P,param eager :bool=true)"),
            "schedule s(ranks P, param eager: bool = true)\n");
  EXPECT_EQ(formatted("pipeline p (i in 0..n)\n{stages 1}\nshare p ( 0 )"),
            "pipeline p(i in 0..n) { stages 1 }\nshare p(0)\n");
  EXPECT_EQ(formatted("prefer fused (fwd of a,bwd of b)on r"),
            "prefer fused(fwd of a, bwd of b) on r\n");
}

TEST(Format, NothingIsAlignedWhereALineWouldBecomeTooLong) {
  std::string message = "\"" + std::string(80, 'm') + "\"";
  expectStays("require a " + message + "\nrequire something_longer \"y\"\n");
}

TEST(Format, CommentsBehindLinesStandInOneColumn) {
  const std::string gap(46, ' ');
  EXPECT_EQ(formatted("fwd aa // one\nbwd aa    // two\n"),
            "fwd aa" + gap + "// one\nbwd aa" + gap + "// two\n");
  std::string code = "f(" + std::string(57, 'x') + ")";
  EXPECT_EQ(formatted(code + "// one\nf(x) // two\n"),
            code + " // one\nf(x)" + std::string(57, ' ') + "// two\n");
  // A line that is longer still is left out.
  code = "f(" + std::string(77, 'x') + ")";
  EXPECT_EQ(formatted(code + "// one\nf(x) // two\n"),
            code + " // one\nf(x)" + std::string(48, ' ') + "// two\n");
}

TEST(Format, CommentsGoOnOrStandByThemselves) {
  const std::string gap(52, ' ');
  EXPECT_EQ(formatted("f(x) // one\n     // more\n"),
            "f(x)" + gap.substr(4) + "// one\n" + gap + "// more\n");
  EXPECT_EQ(formatted("rank r {\nfwd a // one\n// two\n}"),
            "rank r {\n  fwd a" + gap.substr(7) + "// one\n  // two\n}\n");
}

TEST(Format, TextOfCommentsIsKeptUpToBlanksAtTheEnd) {
  EXPECT_EQ(formatted("//a  b\t\r\n//\n///  c"), "//a  b\n//\n///  c\n");
}

TEST(Format, EndsOfLinesAreThoseOfUnix) {
  EXPECT_EQ(formatted("pipe 1\r\n\r\nfwd a"), "pipe 1\n\nfwd a\n");
  EXPECT_EQ(formatted(""), "");
  EXPECT_EQ(formatted("\xEF\xBB\xBFpipe 1"), "\xEF\xBB\xBFpipe 1\n");
}

TEST(Format, ColumnsCountCharacters) {
  EXPECT_EQ(formatted("phase \"\xC3\xA4\" { fwd a }\nphase \"bb\" { fwd a }\n"),
            "phase \"\xC3\xA4\"  { fwd a }\nphase \"bb\" { fwd a }\n");
}

TEST(Format, BracesWithoutPartnersAreLaidOut) {
  EXPECT_EQ(formatted("} fwd a }"), "} fwd a }\n");
  EXPECT_EQ(formatted("rank r { fwd a"), "rank r {\n  fwd a\n");
  EXPECT_EQ(formatted("f(a { b ] } )"), "f(a { b] })\n");
}

/// Time is linear in the number of lines, of comments as of others: this takes a fraction of a
/// second, and would take minutes if each line looked back over those before it.
TEST(Format, LongTextsAreLaidOutInLinearTime) {
  std::string comments, statements, brackets = "f(\n";
  for (unsigned i = 0; i != 200000; ++i) {
    comments += "//\n";
    statements += "let x = 1 // one\n";
    brackets += "//\n- 1,\n";
  }
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(formatted("fwd a\n" + comments + "fwd b\n"), "fwd a\n" + comments + "fwd b\n");
  EXPECT_NE(formatted(statements), "");
  EXPECT_NE(formatted(brackets), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Format, TokensThatCannotBeReadAreReported) {
  EXPECT_EQ(findingsOf("let x = 1 $ 2\nfwd \"a"),
            "1:11: unexpected character '$'\n"
            "2:5: string is not closed on its line; expected '\"'\n");
}

TEST(Format, LimitsAreReported) {
  Limits limits;
  limits.maxNesting = 2;
  EXPECT_EQ(findingsOf("a {\n{ {", limits), "2:3: nested more than 2 levels deep\n");
  limits.maxFileBytes = 4;
  EXPECT_EQ(findingsOf("fwd a", limits), "1:1: the text has 5 bytes, more than the limit of 4\n");
  limits = Limits();
  limits.maxErrors = 1;
  EXPECT_EQ(findingsOf("$ $ $", limits), "1:1: unexpected character '$'\n");
}

} // namespace
