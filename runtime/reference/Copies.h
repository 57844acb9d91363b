//===- Copies.h - finding the copies of stages -------------------------------===//

#ifndef DUALPIPE_RUNTIME_REFERENCE_COPIES_H
#define DUALPIPE_RUNTIME_REFERENCE_COPIES_H

#include "dualpipe/Runtime/Model.h"

#include <cstdint>
#include <vector>

namespace dualpipe::runtime {

/// Index of the copy of `stage` on `rank` in a list that is ascending by (rank, stage), or
/// program::kNone.
uint32_t findCopy(const std::vector<StageCopy> &copies, uint32_t rank, uint32_t stage);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_REFERENCE_COPIES_H
