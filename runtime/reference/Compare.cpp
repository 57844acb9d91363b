//===- Compare.cpp - a run against its replay and the plain sum --------------===//

#include "dualpipe/Runtime/Numerics.h"
#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace dualpipe::runtime {
namespace {

/// A finding, or nothing where all is well.
using Finding = std::optional<std::string>;

std::string formatElement(const DLTensor &tensor, size_t index) {
  const auto *bytes = static_cast<const uint8_t *>(tensor.data);
  size_t size = getElementBytes(tensor.dtype);
  if (tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32) {
    float value;
    std::memcpy(&value, bytes + index * size, sizeof value);
    return fmt::format("{:.9g}", value);
  }
  if (tensor.dtype.code == kDLFloat && tensor.dtype.bits == 64) {
    double value;
    std::memcpy(&value, bytes + index * size, sizeof value);
    return fmt::format("{:.17g}", value);
  }
  std::string text = "0x";
  for (size_t i = size; i-- > 0;)
    text += fmt::format("{:02x}", bytes[index * size + i]);
  return text;
}

/// The first element whose bits differ.
std::optional<size_t> findDifference(const DLTensor &a, const DLTensor &b) {
  size_t bytes = getNumBytes(a);
  if (bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0)
    return std::nullopt;
  const auto *left = static_cast<const uint8_t *>(a.data);
  const auto *right = static_cast<const uint8_t *>(b.data);
  size_t at = size_t(std::mismatch(left, left + bytes, right).first - left);
  return at / getElementBytes(a.dtype);
}

enum class Part { Gradient, Weight };

const DLTensor &getTensor(const StageCopy &copy, Part part, uint32_t index) {
  return part == Part::Gradient ? copy.getGrad(index) : copy.getParam(index);
}

const char *describePart(Part part) { return part == Part::Gradient ? "gradient" : "weight"; }

/// Compares one part of two copies that have the same shapes. `left` and `right` name them.
Finding compareCopies(const StageCopy &a, const StageCopy &b, Part part, const std::string &left,
                      const std::string &right) {
  for (uint32_t index = 0; index < a.getNumParams(); ++index) {
    const DLTensor &one = getTensor(a, part, index), &other = getTensor(b, part, index);
    if (std::optional<size_t> at = findDifference(one, other))
      return fmt::format("rank {}, stage {}: {} of parameter {}, element {}: {} {}, {} {}",
                         a.getRank(), a.getStage(), describePart(part), index, *at, left,
                         formatElement(one, *at), right, formatElement(other, *at));
  }
  return std::nullopt;
}

Finding compareShape(const TrainingResult &run, const TrainingResult &reference) {
  if (run.losses.size() != reference.losses.size())
    return fmt::format("the run has {} losses, expected {}", run.losses.size(),
                       reference.losses.size());
  if (run.copies.size() != reference.copies.size())
    return fmt::format("the run has {} copies of stages, expected {}", run.copies.size(),
                       reference.copies.size());
  for (size_t i = 0; i < run.copies.size(); ++i) {
    const StageCopy &mine = run.copies[i], &wanted = reference.copies[i];
    if (mine.getRank() != wanted.getRank() || mine.getStage() != wanted.getStage())
      return fmt::format("copy {} of the run is stage {} on rank {}, expected stage {} on rank {}",
                         i, mine.getStage(), mine.getRank(), wanted.getStage(), wanted.getRank());
    if (mine.getNumParams() != wanted.getNumParams() ||
        mine.getParamBuffer().size() != wanted.getParamBuffer().size() ||
        mine.hasGradients() != wanted.hasGradients())
      return fmt::format("rank {}, stage {}: the run has other parameters than its replay",
                         mine.getRank(), mine.getStage());
  }
  return std::nullopt;
}

Finding compareLosses(const TrainingResult &run, const TrainingResult &reference) {
  for (size_t i = 0; i < run.losses.size(); ++i)
    if (std::memcmp(&run.losses[i], &reference.losses[i], sizeof(double)) != 0)
      return fmt::format("loss of step {}, micro-batch {}: run {:.17g}, replay {:.17g}",
                         i / reference.numMicrobatches, i % reference.numMicrobatches,
                         run.losses[i], reference.losses[i]);
  return std::nullopt;
}

Finding comparePart(const TrainingResult &run, const TrainingResult &reference, Part part) {
  for (size_t i = 0; i < run.copies.size(); ++i) {
    if (part == Part::Gradient && !run.copies[i].hasGradients())
      continue;
    if (Finding found = compareCopies(run.copies[i], reference.copies[i], part, "run", "replay"))
      return found;
  }
  return std::nullopt;
}

/// Compares each copy of a stage with the first one.
Finding compareCopiesOfStages(const TrainingResult &run) {
  for (const StageCopy &copy : run.copies) {
    auto first = std::find_if(run.copies.begin(), run.copies.end(), [&](const StageCopy &other) {
      return other.getStage() == copy.getStage();
    });
    if (&*first == &copy)
      continue;
    std::string other = fmt::format("copy on rank {}", first->getRank());
    Finding found = compareCopies(copy, *first, Part::Weight, "here", other);
    if (!found && copy.hasGradients())
      found = compareCopies(copy, *first, Part::Gradient, "here", other);
    if (found)
      return found;
  }
  return std::nullopt;
}

template <typename T> double getDifference(const DLTensor &a, const DLTensor &b) {
  const T *left = static_cast<const T *>(a.data), *right = static_cast<const T *>(b.data);
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < getNumElements(a); ++i) {
    double gap = std::abs(double(left[i]) - double(right[i]));
    if (std::isnan(gap))
      return gap;
    difference = std::max(difference, gap);
    norm = std::max(norm, std::abs(double(right[i])));
  }
  return difference == 0 ? 0 : difference / norm;
}

double getTolerance(DLDataType type) { return type.bits == 64 ? 1e-13 : 1e-6; }

/// The plain sum: the largest difference found, and the first gradient that is too far off.
Finding comparePlain(const TrainingResult &run, const TrainingResult &plain, double &worst,
                     std::string &summary) {
  size_t numLosses = plain.losses.size();
  for (size_t i = 0; i < numLosses; ++i) {
    double loss = run.losses[run.losses.size() - numLosses + i];
    if (std::memcmp(&loss, &plain.losses[i], sizeof loss) != 0)
      return fmt::format("loss of the last step, micro-batch {}: run {:.17g}, in plain order "
                         "{:.17g}",
                         i, loss, plain.losses[i]);
  }
  double allowed = 0;
  for (const StageCopy &copy : run.copies)
    for (uint32_t index = 0; index < copy.getNumParams(); ++index) {
      const DLTensor &grad = copy.getGrad(index);
      Result<double> difference =
          getRelativeDifference(grad, plain.copies[copy.getStage()].getGrad(index));
      if (!difference)
        return difference.message();
      allowed = std::max(allowed, getTolerance(grad.dtype));
      worst = std::max(worst, *difference);
      // Written so that a NaN fails.
      if (!(*difference <= getTolerance(grad.dtype)))
        return fmt::format("rank {}, stage {}: gradient of parameter {} is off the plain sum by "
                           "{:.2g}, expected at most {:.0e} of its largest element",
                           copy.getRank(), copy.getStage(), index, *difference,
                           getTolerance(grad.dtype));
    }
  summary = fmt::format("plain sum: gradients agree within {:.1e} of the largest element, "
                        "allowed {:.0e}",
                        worst, allowed);
  return std::nullopt;
}

/// Adds a line to the report; returns false when the check ends here.
bool record(CheckReport &report, const Finding &found, const std::string &wellDone) {
  report.lines.push_back(found ? fmt::format("check failed: {}", *found) : wellDone);
  return !found;
}

size_t countStages(const TrainingResult &run) {
  std::vector<uint32_t> stages;
  for (const StageCopy &copy : run.copies)
    stages.push_back(copy.getStage());
  std::sort(stages.begin(), stages.end());
  return size_t(std::unique(stages.begin(), stages.end()) - stages.begin());
}

} // namespace

std::string CheckReport::getText() const {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

Result<double> getRelativeDifference(const DLTensor &a, const DLTensor &b) {
  if (a.dtype.code == kDLFloat && a.dtype.lanes == 1 && a.dtype.bits == 32)
    return getDifference<float>(a, b);
  if (a.dtype.code == kDLFloat && a.dtype.lanes == 1 && a.dtype.bits == 64)
    return getDifference<double>(a, b);
  return Status::failure(fmt::format("cannot compare tensors of type {}, expected float32 or "
                                     "float64",
                                     describeType(a.dtype)));
}

CheckReport compareRuns(const TrainingResult &run, const TrainingResult &reference,
                        const TrainingResult *plain) {
  CheckReport report;
  if (Finding found = compareShape(run, reference)) {
    record(report, found, "");
    return report;
  }
  bool training = plain != nullptr;
  size_t steps = run.losses.size() / std::max(1u, reference.numMicrobatches);
  std::string summary;
  if (!record(report, compareLosses(run, reference),
              fmt::format("losses: {} micro-batches, {} step{}: equal to the replay bit for bit",
                          reference.numMicrobatches, steps, steps == 1 ? "" : "s")))
    return report;
  if (training &&
      !record(report, comparePart(run, reference, Part::Gradient),
              fmt::format("gradients: {} copies of {} stages: equal to the replay bit for bit",
                          run.copies.size(), countStages(run))))
    return report;
  if (!record(report, comparePart(run, reference, Part::Weight),
              "weights: equal to the replay bit for bit"))
    return report;
  if (!record(report, compareCopiesOfStages(run),
              "copies: all copies of a stage are equal bit for bit"))
    return report;
  if (training) {
    Finding found = comparePlain(run, *plain, report.plainDifference.emplace(0), summary);
    if (!record(report, found, summary))
      return report;
  }
  report.passed = true;
  report.lines.push_back(training ? "check passed: losses, gradients and weights agree bit for bit"
                                  : "check passed: losses and weights agree bit for bit");
  return report;
}

} // namespace dualpipe::runtime
