//===- EmitCuda.cpp - a program as CUDA C++ ---------------------------------===//

#include "dualpipe/Runtime/EmitCuda.h"
#include "RankWriter.h"

#include "dualpipe/Program/Digest.h"

#include <fmt/format.h>

#include <iterator>

namespace dualpipe::runtime {

std::string getEmittedName(const program::SharedInfo &shared) {
  return emit::toIdentifier(shared.schedule);
}

std::string getRankFileName(uint32_t rank) { return fmt::format("rank{}.cu", rank); }

std::string emitRank(const program::SharedInfo &shared, const program::RankProgram &rank) {
  return emit::RankWriter(shared, rank).run();
}

std::string emitStep(const program::Program &program) {
  const program::SharedInfo &shared = program.shared;
  std::string text = fmt::format(
      "// The step of the schedule {} as a plug-in of the launcher: the ranks that have "
      "one here.\n\n#include \"dualpipe/emitted.h\"\n\n",
      emit::toComment(shared.schedule));
  const auto out = std::back_inserter(text);
  for (const program::RankProgram &rank : program.ranks)
    fmt::format_to(out, "int dualpipe_issue_rank{}(dp_step *step);\n", rank.rank);
  fmt::format_to(out, "\n/// Rank, digest of what the program file has for it, its step.\n"
                      "static const dp_step_rank steps[] = {{\n");
  for (const program::RankProgram &rank : program.ranks)
    fmt::format_to(out, "    {{{0}, 0x{1:016x}, dualpipe_issue_rank{0}}},\n", rank.rank,
                   program::computeDigest(shared, rank));
  fmt::format_to(out,
                 "}};\n\n"
                 "static const dp_step_program program = {{\n"
                 "    DP_STEP_ABI_VERSION, sizeof(dp_step_program), \"{}\", {}, {}, steps,\n"
                 "}};\n\n"
                 "extern \"C\" __attribute__((visibility(\"default\"))) const dp_step_program "
                 "*dp_get_step(void);\n"
                 "const dp_step_program *dp_get_step(void) {{ return &program; }}\n",
                 getEmittedName(shared), shared.numRanks, program.ranks.size());
  return text;
}

std::string emitBuildFile(const program::Program &program) {
  const std::string name = getEmittedName(program.shared);
  std::string text = fmt::format(
      R"(# Builds the step of the schedule {0} into lib{0}_step.so:
#   cmake -S . -B build -DDUALPIPE_INCLUDE_DIR=<dualpipe>/include && cmake --build build
#   launcher {0}.dpx --step=build/lib{0}_step.so
# The files have no kernels, so the C++ compiler builds them; -DDUALPIPE_STEP_NVCC=ON has nvcc do it.

cmake_minimum_required(VERSION 3.22)
project({0}_step LANGUAGES CXX)
option(DUALPIPE_STEP_NVCC "Compile the steps of ranks with nvcc" OFF)
# Straight calls gain nothing from an optimizer, which takes long over them.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug)
endif()
find_path(DUALPIPE_INCLUDE_DIR dualpipe/emitted.h REQUIRED
  DOC "Where dualpipe/emitted.h is: the folder include of dualpipe")

set(ranks
)",
      name);
  const auto out = std::back_inserter(text);
  for (const program::RankProgram &rank : program.ranks)
    fmt::format_to(out, "  {}\n", getRankFileName(rank.rank));
  fmt::format_to(out, R"---()
if(DUALPIPE_STEP_NVCC)
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  enable_language(CUDA)
else()
  set_source_files_properties(${{ranks}} PROPERTIES LANGUAGE CXX)
endif()
add_library({0}_step SHARED step.cpp ${{ranks}})
set_target_properties({0}_step PROPERTIES
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
target_include_directories({0}_step PRIVATE ${{DUALPIPE_INCLUDE_DIR}})
target_compile_options({0}_step PRIVATE
  -std=c++20 "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
)---",
                 name);
  return text;
}

} // namespace dualpipe::runtime
