//===- Describe.cpp - ops and transfers in messages -------------------------===//

#include "dualpipe/Schedule/Describe.h"

#include <fmt/format.h>

using namespace dualpipe;

std::string dualpipe::describe(OpKind kind, uint32_t stage, uint32_t microbatch) {
  return fmt::format("{} of stage {}, micro-batch {}", getKeyword(kind), stage, microbatch);
}

std::string dualpipe::describe(const RankOrder &order, size_t op) {
  return describe(order.kind[op], order.stage[op], order.microbatch[op]);
}

std::string dualpipe::describe(const RankOrder::Transfer &end) {
  return fmt::format("{} {} of stage {}, micro-batch {}", end.isSend ? "send" : "recv",
                     end.isGrad ? "bwd" : "fwd", end.stage, end.microbatch);
}
