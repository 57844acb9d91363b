//===- EmittedStep.cpp - loading a step that --emit=cuda wrote --------------===//

#include "dualpipe/Runtime/EmittedStep.h"

#include "dualpipe/Program/Digest.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace dualpipe::runtime {

/// What must hold before anything behind the header is read.
static Status checkInterface(const std::string &name, const dp_step_program &steps) {
  if (steps.abi_version != DP_STEP_ABI_VERSION)
    return Status::failure(fmt::format(
        "{}: built for another version of the step interface, expected {}, got {}; emit it again "
        "and build it with this emitted.h",
        name, DP_STEP_ABI_VERSION, steps.abi_version));
  if (steps.struct_size < sizeof(dp_step_program))
    return Status::failure(
        fmt::format("{}: its dp_step_program has {} bytes, expected at least {}; build it with "
                    "this emitted.h",
                    name, steps.struct_size, sizeof(dp_step_program)));
  return Status::success();
}

Result<std::shared_ptr<const EmittedStep>> EmittedStep::load(const std::string &path) {
  // dlopen searches the library path for a bare name; the user means a file.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Status::failure(fmt::format("cannot load the step '{}': {}", path, dlerror()));
  std::shared_ptr<void> library(handle, [](void *open) { dlclose(open); });
  const auto get = reinterpret_cast<dp_get_step_fn>(dlsym(handle, DP_GET_STEP_SYMBOL));
  if (!get)
    return Status::failure(fmt::format("{}: not a step of --emit=cuda: it does not export '{}'",
                                       path, DP_GET_STEP_SYMBOL));
  const dp_step_program *steps = get();
  if (!steps)
    return Status::failure(fmt::format("{}: its '{}' returned no step", path, DP_GET_STEP_SYMBOL));
  return create(*steps, path, std::move(library));
}

Result<std::shared_ptr<const EmittedStep>> EmittedStep::create(const dp_step_program &steps,
                                                               const std::string &name) {
  return create(steps, name, nullptr);
}

Result<std::shared_ptr<const EmittedStep>> EmittedStep::create(const dp_step_program &steps,
                                                               const std::string &name,
                                                               std::shared_ptr<void> library) {
  if (Status status = checkInterface(name, steps); !status.ok())
    return status;
  return std::shared_ptr<const EmittedStep>(new EmittedStep(name, std::move(library), steps));
}

const dp_step_rank *EmittedStep::findRank(uint32_t rank) const {
  for (uint32_t i = 0; i != steps->num_steps; ++i)
    if (steps->steps[i].rank == rank)
      return &steps->steps[i];
  return nullptr;
}

Status EmittedStep::checkProgram(const program::Program &program) const {
  if (steps->num_ranks != program.shared.numRanks)
    return Status::failure(fmt::format("{}: the step of '{}' on {} ranks, expected that of '{}' on "
                                       "{}, which the program file holds",
                                       name, steps->schedule, steps->num_ranks,
                                       program.shared.schedule, program.shared.numRanks));
  for (const program::RankProgram &rank : program.ranks) {
    const dp_step_rank *step = findRank(rank.rank);
    if (!step || !step->issue)
      return Status::failure(fmt::format("{}: there is no step for rank {}; emit all ranks, "
                                         "without --only-rank",
                                         name, rank.rank));
    const uint64_t digest = program::computeDigest(program.shared, rank);
    if (step->digest != digest)
      return Status::failure(
          fmt::format("{}: the step of rank {} was emitted from another program (digest {:016x}, "
                      "the program file has {:016x}); run the program file that --emit=cuda wrote "
                      "beside it, or emit and build it again",
                      name, rank.rank, step->digest, digest));
  }
  return Status::success();
}

} // namespace dualpipe::runtime
