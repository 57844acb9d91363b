//===- Options.h - the launcher's command line ------------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_OPTIONS_H
#define DUALPIPE_TOOLS_LAUNCHER_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::launcher {

/// What the user asked for; the values are the defaults.
struct Options {
  std::string program;
  std::string backend = "auto";
  bool backendGiven = false; ///< and not the default
  bool foldChannels = false;
  std::string graph; ///< "try" or "require" where steps are to be captured, or empty
  std::string costs; ///< of the simulation, over those that the program was planned with
  std::string model = "mlp";
  std::vector<std::string> settings; ///< KEY=VALUE
  /// A simulation takes the sizes of the model, since it was named.
  bool measuresModel = false;
  uint32_t steps = 1;
  uint64_t seed = 0;
  std::string optimizer = "sgd";
  double learningRate = 0.01;
  double timeoutSeconds = 120;
  std::optional<uint64_t> jitterSeed;
  std::optional<uint64_t> shuffleSeed;
  std::string step;    ///< a plug-in, or empty
  std::string trace;   ///< a file, or empty
  std::string profile; ///< a file, or empty
  bool explain = false;
  bool check = false;
  bool json = false;
  bool dump = false;
  bool devices = false;
};

/// Reads the command line. Where there is nothing to run (--help, --version, a
/// mistake) prints what is to be said and returns the exit code in `exitCode`.
std::optional<Options> parseOptions(int argc, char **argv, int &exitCode);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_OPTIONS_H
