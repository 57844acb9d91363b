//===- Builtin.h - the models that come with the runtime -------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_BUILTIN_H
#define DUALPIPE_RUNTIME_MODELS_BUILTIN_H

#include "dualpipe/stage.h"

namespace dualpipe::models {

/// The model of the published DualPipe example: see Mlp.h.
const dp_model_api *getMlp();
/// Does nothing: for measuring the runtime itself.
const dp_model_api *getNoop();
/// Waits given times: for holding predictions against runs.
const dp_model_api *getWait();

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_BUILTIN_H
