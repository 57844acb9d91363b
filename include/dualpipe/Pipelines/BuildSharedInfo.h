//===- BuildSharedInfo.h - what all ranks of a program share ----------------===//

#ifndef DUALPIPE_PIPELINES_BUILDSHAREDINFO_H
#define DUALPIPE_PIPELINES_BUILDSHAREDINFO_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/Timeline.h"

namespace dualpipe {

/// The shared section of a schedule's program: placement, channels with the
/// digest of what passes, reduce groups, phases, places. It follows from the
/// order tables alone, so the digests are a check on what the lowering of each
/// rank makes of them.
program::SharedInfo buildSharedInfo(const Timeline &timeline, const Costs &planCosts);

} // namespace dualpipe

#endif // DUALPIPE_PIPELINES_BUILDSHAREDINFO_H
