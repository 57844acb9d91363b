/* A plug-in with one fault, chosen when it is built: FAULT_VERSION, FAULT_SIZE, FAULT_LACKS or
 * FAULT_NULL. */
#include "dualpipe/stage.h"

DP_EXPORT const dp_model_api *dp_get_model(void) {
#if defined(FAULT_NULL)
  return 0;
#else
  static dp_model_api api;
  api.abi_version = DP_STAGE_ABI_VERSION;
  api.struct_size = sizeof api;
  api.name = "faulty";
#if defined(FAULT_VERSION)
  api.abi_version = 2;
#elif defined(FAULT_SIZE)
  api.struct_size = 16;
#endif
  return &api; /* FAULT_LACKS: no function at all */
#endif
}
