//===- Placement.h - the usual maps from stages to ranks --------------------===//

#ifndef DUALPIPE_SCHEDULE_PLACEMENT_H
#define DUALPIPE_SCHEDULE_PLACEMENT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dualpipe {

/// Where the stages of a pipeline stand, by the names of the literature. With 3 ranks:
///
///   Line      0 1 2
///   Reverse   2 1 0
///   Loop      0 1 2 0 1 2 0 …
///   V         0 1 2 2 1 0
///   Waves     0 1 2 2 1 0 0 1 2 …
enum class PlacementShape : uint8_t { Line, Reverse, Loop, V, Waves };

/// All of them, simple ones first.
inline constexpr PlacementShape kPlacementShapes[] = {PlacementShape::Line, PlacementShape::Reverse,
                                                      PlacementShape::Loop, PlacementShape::V,
                                                      PlacementShape::Waves};

/// The rank of `stage`, counted within its pipeline; nothing where a pipeline of this shape
/// has no such stage.
std::optional<uint32_t> getRank(PlacementShape shape, uint32_t stage, uint32_t numRanks);

/// The first shape whose stages stand like those of `placement`, which may have fewer of them;
/// nothing where there is none.
std::optional<PlacementShape> findShape(const std::vector<uint32_t> &placement, uint32_t numRanks);

/// The shape as an expression of the language, with `stage` and `ranks` for the names of the
/// stage and the number of ranks.
std::string spell(PlacementShape shape, std::string_view stage, std::string_view ranks);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_PLACEMENT_H
