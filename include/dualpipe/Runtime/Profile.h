//===- Profile.h - what the stages of a model took --------------------------===//
//
// A profile has what a run measured of the stages of a model: facts that hold for any
// schedule of as many stages. `launcher --profile` writes one, `--cost=FILE.json`
// predicts with it. docs/profiles.md has the file, and how values are found.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PROFILE_H
#define DUALPIPE_RUNTIME_PROFILE_H

#include "dualpipe/Runtime/ModelSizes.h"
#include "dualpipe/Runtime/Recording.h"
#include "dualpipe/Runtime/Simulation.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

/// Where and of what a profile was made.
struct ProfileOrigin {
  std::string schedule;
  std::vector<std::pair<std::string, int64_t>> params;
  uint32_t ranks = 0, stages = 0, microbatches = 0, components = 1;
  std::string model;
  std::vector<std::string> settings; ///< KEY=VALUE
  std::string device;
  uint32_t cores = 0; ///< of the machine

  bool operator==(const ProfileOrigin &) const = default;
};

/// One component of one stage in one function. Times in ticks of a nanosecond.
struct FunctionProfile {
  FunctionKey key;
  /// Without the time in which its thread could have run but had no core.
  Ticks time = 0;
  Ticks cpu = 0; ///< on a core
  uint64_t samples = 0;

  bool operator==(const FunctionProfile &) const = default;
};

/// A pair that the model runs as one function. The members are sorted.
struct PairProfile {
  std::vector<FunctionKey> members;
  Ticks time = 0, cpu = 0;
  uint64_t samples = 0;

  bool operator==(const PairProfile &) const = default;
};

/// Transfers of one size.
struct TransferProfile {
  uint64_t bytes = 0;
  Ticks time = 0;
  uint64_t samples = 0;

  bool operator==(const TransferProfile &) const = default;
};

/// Reductions or optimizer steps of one stage.
struct StageProfile {
  uint32_t stage = 0;
  Ticks time = 0;
  uint64_t samples = 0;

  bool operator==(const StageProfile &) const = default;
};

/// All of it; every time is a median.
struct Profile {
  ProfileOrigin origin;
  uint32_t steps = 0; ///< that were measured
  Ticks stepTime = 0; ///< of a whole step
  std::vector<FunctionProfile> functions;
  std::vector<PairProfile> pairs;
  std::vector<TransferProfile> transfers; ///< by size
  Ticks latency = 0;                      ///< fitted
  double bandwidth = 0;                   ///< fitted, bytes in a millisecond; 0 where unknown
  std::vector<StageProfile> reductions, stageSteps;
  ModelSizes sizes;

  bool operator==(const Profile &) const = default;
};

/// Latency and bandwidth of transfers whose medians are given by size: the slope is the
/// median of those between any two sizes (Theil and Sen), the latency the median of
/// what the slope leaves over, and not below 0. Bandwidth 0 where there is one size, or
/// where larger transfers take no longer.
void fitTransfers(Profile &profile);

/// Medians over the recorded steps, without step 0. Fails where no other step was
/// recorded, or the recordings are not of `program`.
Result<Profile> measureProfile(const program::Program &program,
                               const std::vector<StepRecording> &recordings, ProfileOrigin origin,
                               ModelSizes sizes);

/// The text of a profile file, which ends with a newline.
std::string printProfile(const Profile &profile);
/// Fails with the place in the text where it is none.
Result<Profile> parseProfile(std::string_view text);
/// Fails with the name of the file in front.
Result<Profile> readProfileFile(const std::string &path);

/// The costs of `program` by a profile, and over them what `overrides` gives as
/// `SimulationCosts::override` reads it: times in milliseconds. Fails where the profile is
/// of another number of stages, or where neither has a function that the program launches.
Result<SimulationCosts> getCosts(const Profile &profile, const program::Program &program,
                                 std::string_view overrides = "");

/// What `--cost` of the tools says: NAME=VALUE items, and in front of them perhaps a
/// profile.
struct CostOption {
  std::optional<Profile> profile;
  std::string overrides;
  std::string text; ///< as given

  /// Reads the profile. Fails as `readProfileFile` and `SimulationCosts::parse` do.
  static Result<CostOption> parse(std::string_view text);
  /// Over those that the program was planned with, or those of the profile.
  Result<SimulationCosts> getCosts(const program::Program &program) const;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROFILE_H
