//===- ExactModel.h - a model whose results do not depend on rounding -------===//

#ifndef DUALPIPE_TEST_SUPPORT_EXACTMODEL_H
#define DUALPIPE_TEST_SUPPORT_EXACTMODEL_H

#include "dualpipe/stage.h"

namespace dualpipe::test {

/// Every tensor is one float64 that holds an integer below 2^31: a hash of what the function read
/// and of stage, micro-batch and component. A gradient is the sum of such numbers, exact in any
/// order, and the optimizer step hashes weight and gradient. So two runs agree bit for bit if and,
/// but for collisions, only if every function read the same values and every weight got the same
/// contributions.
const dp_model_api &getExactModel();

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_EXACTMODEL_H
