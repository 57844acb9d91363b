//===- TransferKind.cpp - what a transfer carries ---------------------------===//

#include "dialects/Common/TransferKind.h"

#include "dialects/Common/Enums.cpp.inc"
