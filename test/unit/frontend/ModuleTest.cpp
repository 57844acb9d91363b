//===- ModuleTest.cpp - files and imports ----------------------------------===//

#include "Harness.h"

#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

std::string importing(const std::string &imports, const std::string &body) {
  return "pipe 1\n" + imports + programOf(body).substr(7);
}

TEST(Modules, ImportsAreRelativeToTheImporter) {
  Outcome run =
      compileFiles({{"main.pipe", importing("import \"lib/a.pipe\"\n", "both(p)")},
                    {"lib/a.pipe", "pipe 1\nimport \"b.pipe\"\ndef both(c) { one(c); bwd c }"},
                    {"lib/b.pipe", "pipe 1\ndef one(c) { fwd c }"}},
                   sized(1, 1));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrder(run.schedule, 0), "0F0,0B0");
  EXPECT_EQ(run.schedule.files,
            (std::vector<std::string>{"main.pipe", "lib/a.pipe", "lib/b.pipe"}));
  EXPECT_EQ(run.schedule.getLoc(0, 0).file, 2u);
  EXPECT_EQ(run.schedule.getLoc(0, 1).file, 1u);
}

TEST(Modules, ImportsAreNotPassedOn) {
  Outcome run = compileFiles({{"main.pipe", importing("import \"a.pipe\"\n", "one(p)")},
                              {"a.pipe", "pipe 1\nimport \"b.pipe\"\n"},
                              {"b.pipe", "pipe 1\ndef one(c) { fwd c }"}},
                             sized(1, 1));
  EXPECT_EQ(run.findings, "main.pipe:6:1: error: unknown definition 'one'\n");
}

TEST(Modules, AFileIsLoadedOnce) {
  Outcome run =
      compileFiles({{"main.pipe", importing("import \"a.pipe\"\nimport \"./a.pipe\"\n", "one(p)")},
                    {"a.pipe", "pipe 1\ndef one(c) { fwd c }"}},
                   sized(1, 1));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.files, (std::vector<std::string>{"main.pipe", "a.pipe"}));
}

TEST(Modules, ImportsFormNoCircle) {
  auto findings = [](const Files &more) {
    Files files = more;
    files["main.pipe"] = importing("import \"a.pipe\"\n", "fwd p");
    return compileFiles(files, sized(1, 1)).findings;
  };
  EXPECT_EQ(findings({{"a.pipe", "pipe 1\nimport \"a.pipe\"\n"}}),
            "a.pipe:2:1: error: imports form a circle: 'a.pipe' imports 'a.pipe'\n");
  EXPECT_EQ(findings({{"a.pipe", "pipe 1\nimport \"c.pipe\"\nimport \"b.pipe\"\n"},
                      {"b.pipe", "pipe 1\nimport \"c.pipe\"\nimport \"main.pipe\"\n"},
                      {"c.pipe", "pipe 1\n"}}),
            "b.pipe:3:1: error: imports form a circle: 'main.pipe' imports 'a.pipe' imports "
            "'b.pipe' imports 'main.pipe'\n");
}

TEST(Modules, ImportFaults) {
  auto findings = [](const Files &more) {
    Files files = more;
    files["main.pipe"] = importing("import \"a.pipe\"\n", "fwd p");
    return compileFiles(files, sized(1, 1)).findings;
  };
  EXPECT_EQ(findings({}),
            "main.pipe:2:1: error: cannot read 'a.pipe': No such file or directory\n");
  EXPECT_EQ(findings({{"a.pipe/b", ""}}),
            "main.pipe:2:1: error: cannot read 'a.pipe': it is not a regular file\n");
  EXPECT_EQ(findings({{"a.pipe", "pipe 1\ndef f( = 1\n"}}),
            "a.pipe:2:8: error: expected the name of a parameter, got '='\n");
  EXPECT_EQ(findings({{"a.pipe", "\xFF"}}), "a.pipe:1:1: error: the text is not valid UTF-8\n");
  Outcome run = compileFiles({{"main.pipe", importing("import \"a.pipe\"\ndef f() = 1\n", "fwd p")},
                              {"a.pipe", "pipe 1\ndef f() = 2"}},
                             sized(1, 1));
  EXPECT_EQ(run.findings, "main.pipe:3:5: error: 'f' is already defined\n"
                          "  a.pipe:2:5: note: it is defined here\n");
}

TEST(Modules, DevicesAndMissingFilesAreNotRead) {
  EXPECT_EQ(compilePath("/dev/zero", sized(1, 1)).findings,
            "error: cannot read '/dev/zero': it is not a regular file\n");
  EXPECT_EQ(compilePath("/nowhere/x.pipe", sized(1, 1)).findings,
            "error: cannot read '/nowhere/x.pipe': No such file or directory\n");
}

TEST(Modules, SchedulesOfImportsDoNotCount) {
  Outcome run = compileFiles(
      {{"main.pipe", importing("import \"a.pipe\"\n", "fwd p")}, {"a.pipe", programOf("bwd p")}},
      sized(1, 1));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrder(run.schedule, 0), "0F0");
}

TEST(Modules, AnInvalidModuleIsNotInstantiated) {
  llvm::SourceMgr sources;
  DiagnosticSink sink;
  Module module = parseFile(sources, "/nowhere/x.pipe", sink);
  EXPECT_FALSE(module.isValid());
  Schedule schedule;
  EXPECT_TRUE(llvm::failed(instantiate(module, sized(1, 1), schedule, sink)));
  EXPECT_EQ(sink.diagnostics().back().message, "the file has errors and cannot be compiled");
}

TEST(Modules, ABufferOfTheCallerIsParsed) {
  llvm::SourceMgr sources;
  const std::string text = programOf("fwd p");
  unsigned buffer = sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, "<stdin>", false), llvm::SMLoc());
  DiagnosticSink sink;
  Module module = parse(sources, buffer, sink);
  ASSERT_TRUE(module.isValid());
  EXPECT_EQ(module.getFiles().front(), "<stdin>");
  EXPECT_EQ(module.getScheduleNames(), std::vector<std::string>{"s"});
}

} // namespace
