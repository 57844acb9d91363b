//===- Settings.h - reading a model's KEY=VALUE settings --------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_SETTINGS_H
#define DUALPIPE_RUNTIME_MODELS_SETTINGS_H

#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dualpipe::models {

/// The candidate nearest to `word`, or an empty string where none is near.
std::string suggest(const std::string &word, const std::vector<std::string> &candidates);

/// " (did you mean 'x'?)" or an empty string.
std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates);

/// "a, b, c"
std::string joinList(const std::vector<std::string> &words);

/// Reads settings into variables: declare each with `integer` or `choice`, then `finish`.
class Settings {
public:
  explicit Settings(const dp_model_config &config) : config(config) {}

  /// An integer in [least, most].
  Settings &integer(const char *key, int64_t &value, int64_t least, int64_t most);
  /// One of a few words; `value` becomes its index.
  Settings &choice(const char *key, int64_t &value, const std::vector<std::string> &words);
  /// The first problem found: a bad value, or a key that nobody declared.
  Status finish() const;

private:
  /// The last value given for `key`, or null.
  const char *find(const char *key);
  void fail(std::string message);

  const dp_model_config &config;
  std::vector<std::string> known;
  std::string problem;
};

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_SETTINGS_H
