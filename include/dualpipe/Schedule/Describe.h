//===- Describe.h - ops and transfers in messages ---------------------------===//

#ifndef DUALPIPE_SCHEDULE_DESCRIBE_H
#define DUALPIPE_SCHEDULE_DESCRIBE_H

#include "dualpipe/Schedule/Schedule.h"

#include <string>

namespace dualpipe {

/// "fwd of stage 2, micro-batch 5", both numbered over the whole schedule.
std::string describe(OpKind kind, uint32_t stage, uint32_t microbatch);
/// The same of an op of `order`.
std::string describe(const RankOrder &order, size_t op);
/// "send bwd of stage 2, micro-batch 5".
std::string describe(const RankOrder::Transfer &end);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_DESCRIBE_H
