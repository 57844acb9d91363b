//===- FirstFailure.h - the failures of what runs alone ---------------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_FIRSTFAILURE_H
#define DUALPIPE_RUNTIME_EXECUTOR_FIRSTFAILURE_H

#include "dualpipe/Runtime/Device.h"

#include <optional>
#include <utility>

namespace dualpipe::runtime {

/// Keeps the first failure; nothing else runs that it would have to stop. For one thread.
struct FirstFailure : FailureSink {
  void fail(Status status) override {
    if (!failure)
      failure = std::move(status);
  }
  std::optional<Status> failure;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_FIRSTFAILURE_H
