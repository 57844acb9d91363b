//===- PrintPipe.h - schedules as explicit `.pipe` programs ------------------===//

#ifndef DUALPIPE_TARGET_PRINTPIPE_H
#define DUALPIPE_TARGET_PRINTPIPE_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Status.h"

#include <string>

namespace dualpipe {

/// An order table as a `.pipe` program for its numbers of ranks and micro-batches: every op
/// with its stage and micro-batch, rank by rank, runs of equal structure as loops. Whoever
/// made the table, the program gives the same one but for places in the text.
///
/// Names that the language cannot spell are changed to ones that it can. A schedule that
/// runs forward only gives a program for `--forward-only`. Fails where the stages are not
/// numbered in the order of the micro-batches that visit them, which the language cannot say.
Result<std::string> printPipe(const Schedule &schedule);

} // namespace dualpipe

#endif // DUALPIPE_TARGET_PRINTPIPE_H
