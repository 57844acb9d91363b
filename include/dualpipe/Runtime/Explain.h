//===- Explain.h - predicted against measured -------------------------------===//
//
// A run is simulated with its own measured costs and held against what it took. What
// is different then is what the simulation does not know of the device.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_EXPLAIN_H
#define DUALPIPE_RUNTIME_EXPLAIN_H

#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Runtime/Profile.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::runtime {

/// Where the time of a rank goes: computes by kind, as in PathKind; loading; nothing.
inline constexpr size_t kLoadTime = kNumPathKinds;
inline constexpr size_t kIdleTime = kNumPathKinds + 1;
using RankTimeByKind = std::array<Ticks, kNumPathKinds + 2>;

/// A run as it was predicted, or measured. The times of a rank add up to the makespan.
struct ExplainedRun {
  Prediction prediction;
  std::vector<RankTimeByKind> ranks;
};

struct Explanation {
  ExplainedRun predicted, measured;
  uint32_t step = 0;     ///< the step that is shown: the one in the middle by its time
  uint32_t numSteps = 0; ///< of so many
};

/// Simulates `program` with the costs of `profile`, where more ranks than `cores` share
/// these, if computes need cores, and reads the median step off `recordings`. Fails as `getCosts`,
/// `predict` and `readRecording` do.
Result<Explanation> explain(const program::Program &program, const Profile &profile,
                            const std::vector<StepRecording> &recordings,
                            std::optional<uint32_t> cores);

/// The measured costs of a run on so many cores, or on devices that need none.
Result<SimulationCosts> getOwnCosts(const program::Program &program, const Profile &profile,
                                    std::optional<uint32_t> cores);

/// One table: the whole, by rank, by kind of op.
std::string printExplanation(const Explanation &explanation);
/// The same as a JSON object, indented as a value of an object, without a newline at the
/// end; docs/profiles.md has the names.
std::string printExplanationJson(const Explanation &explanation);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXPLAIN_H
