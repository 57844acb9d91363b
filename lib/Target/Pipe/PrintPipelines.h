//===- PrintPipelines.h - the declarations of a schedule -----------------------===//

#ifndef DUALPIPE_LIB_TARGET_PIPE_PRINTPIPELINES_H
#define DUALPIPE_LIB_TARGET_PIPE_PRINTPIPELINES_H

#include "Names.h"
#include "dualpipe/Schedule/Schedule.h"

#include <string>
#include <vector>

namespace dualpipe::pipe_text {

/// The names that a program uses. Those of the schedule are declared first, so that they
/// keep their spelling.
struct Scope {
  explicit Scope(const Schedule &schedule);

  Names names;
  std::string schedule;
  std::vector<std::string> params;
  /// How each pipeline is referred to: `p`, or `p(2)` for a member of a family.
  std::vector<std::string> pipelines;
  std::string ranks, microbatches, rank, stage, member, loop;
};

/// A run of pipelines that are declared at once.
struct PipelineUnit {
  std::string name;
  size_t first = 0, count = 1;
  /// The number of the first member; nothing for a pipeline on its own.
  std::optional<int64_t> firstMember;
};

/// The declarations of the pipelines and what they share, a line each. Names the tables in
/// `scope` that they need.
std::vector<std::string> printPipelines(const Schedule &schedule, Scope &scope);

/// The `cost`, `memory` and `model` declarations, if there are any, and their tables.
std::vector<std::string> printPlans(const Schedule &schedule, Scope &scope);

} // namespace dualpipe::pipe_text

#endif // DUALPIPE_LIB_TARGET_PIPE_PRINTPIPELINES_H
