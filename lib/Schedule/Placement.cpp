//===- Placement.cpp - the usual maps from stages to ranks ------------------===//

#include "dualpipe/Schedule/Placement.h"

#include <algorithm>
#include <fmt/format.h>

using namespace dualpipe;

std::optional<uint32_t> dualpipe::getRank(PlacementShape shape, uint32_t stage, uint32_t numRanks) {
  uint32_t turn = stage / numRanks, place = stage % numRanks;
  auto within = [&](uint32_t turns, uint32_t rank) {
    return turn < turns ? std::optional(rank) : std::nullopt;
  };
  uint32_t wave = turn % 2 == 0 ? place : numRanks - 1 - place;
  switch (shape) {
  case PlacementShape::Line:
    return within(1, place);
  case PlacementShape::Reverse:
    return within(1, numRanks - 1 - place);
  case PlacementShape::Loop:
    return place;
  case PlacementShape::V:
    return within(2, wave);
  case PlacementShape::Waves:
    return wave;
  }
  return std::nullopt;
}

std::optional<PlacementShape> dualpipe::findShape(const std::vector<uint32_t> &placement,
                                                  uint32_t numRanks) {
  auto isLike = [&](PlacementShape shape) {
    for (uint32_t stage = 0; stage != placement.size(); ++stage)
      if (getRank(shape, stage, numRanks) != placement[stage])
        return false;
    return true;
  };
  auto found = std::find_if(std::begin(kPlacementShapes), std::end(kPlacementShapes), isLike);
  return found == std::end(kPlacementShapes) ? std::nullopt : std::optional(*found);
}

std::string dualpipe::spell(PlacementShape shape, std::string_view stage, std::string_view ranks) {
  switch (shape) {
  case PlacementShape::Line:
    return std::string(stage);
  case PlacementShape::Reverse:
    return fmt::format("{} - 1 - {}", ranks, stage);
  case PlacementShape::Loop:
    return fmt::format("{} mod {}", stage, ranks);
  case PlacementShape::V:
    return fmt::format("if {0} < {1} then {0} else 2 * {1} - 1 - {0}", stage, ranks);
  case PlacementShape::Waves:
    return fmt::format("if {0} div {1} mod 2 == 0 then {0} mod {1} else {1} - 1 - {0} mod {1}",
                       stage, ranks);
  }
  return "";
}
