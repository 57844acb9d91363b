//===- Settings.cpp - reading a model's KEY=VALUE settings ------------------===//

#include "runtime/models/Settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

namespace dualpipe::models {
namespace {

/// Levenshtein distance: insertions, deletions and replacements.
size_t getDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

} // namespace

std::string suggest(const std::string &word, const std::vector<std::string> &candidates) {
  std::string best;
  size_t bestDistance = word.size() / 3 + 2;
  for (const std::string &candidate : candidates) {
    size_t distance = getDistance(word, candidate);
    if (distance < bestDistance && distance < candidate.size()) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  std::string near = suggest(word, candidates);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

std::string joinList(const std::vector<std::string> &words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

const char *Settings::find(const char *key) {
  known.push_back(key);
  const char *value = nullptr;
  for (uint32_t i = 0; i < config.num_settings; ++i)
    if (std::strcmp(config.keys[i], key) == 0)
      value = config.values[i];
  return value;
}

void Settings::fail(std::string message) {
  if (problem.empty())
    problem = std::move(message);
}

Settings &Settings::integer(const char *key, int64_t &value, int64_t least, int64_t most) {
  const char *text = find(key);
  if (!text)
    return *this;
  const char *end = text + std::strlen(text);
  int64_t number = 0;
  auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    fail(fmt::format("setting '{}': expected an integer from {} to {}, got '{}'", key, least, most,
                     text));
  else
    value = number;
  return *this;
}

Settings &Settings::choice(const char *key, int64_t &value, const std::vector<std::string> &words) {
  const char *text = find(key);
  if (!text)
    return *this;
  auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end())
    fail(fmt::format("setting '{}': expected one of {}, got '{}'", key, joinList(words), text));
  else
    value = found - words.begin();
  return *this;
}

Status Settings::finish() const {
  for (uint32_t i = 0; i < config.num_settings; ++i)
    if (std::find(known.begin(), known.end(), config.keys[i]) == known.end())
      return Status::failure(fmt::format("unknown setting '{}'{}; the settings are {}",
                                         config.keys[i], didYouMean(config.keys[i], known),
                                         joinList(known)));
  return problem.empty() ? Status::success() : Status::failure(problem);
}

} // namespace dualpipe::models
