//===- Keywords.h - the language's words for what a program runs ------------===//

#ifndef DUALPIPE_PROGRAM_KEYWORDS_H
#define DUALPIPE_PROGRAM_KEYWORDS_H

#include "dualpipe/Program/Contract.h"

namespace dualpipe::program {

/// "fwd", "bwd", "bwd_input", "bwd_weight"; for what the language has no word for, as in costs:
/// "load_input", "load_labels".
const char *getKeyword(Function function);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_KEYWORDS_H
