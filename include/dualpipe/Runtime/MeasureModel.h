//===- MeasureModel.h - the sizes of a model that is at hand ----------------===//

#ifndef DUALPIPE_RUNTIME_MEASUREMODEL_H
#define DUALPIPE_RUNTIME_MEASUREMODEL_H

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/ModelSizes.h"

namespace dualpipe::runtime {

/// What the runtime allocates for the stages of `model` when `optimizer` trains it.
ModelSizes measureModel(const Model &model, const Optimizer &optimizer);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_MEASUREMODEL_H
