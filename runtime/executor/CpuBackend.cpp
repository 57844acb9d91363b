//===- CpuBackend.cpp - ranks as threads of this process -----------------------===//

#include "dualpipe/Runtime/Backend.h"

namespace dualpipe::runtime {

Result<Backend::Ends> CpuBackend::connect(const program::RankProgram &rank, const Model &,
                                          FailureSink &failures, RankRecorder *recorder) {
  auto device = std::make_unique<CpuDevice>(rank, failures, options);
  device->setRecorder(recorder);
  Result<std::unique_ptr<Transport>> transport = hub.connect(rank, *device);
  if (!transport.ok())
    return transport.getStatus();
  return Ends{std::move(device), nullptr, std::move(*transport)};
}

} // namespace dualpipe::runtime
