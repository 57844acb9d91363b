//===- Backend.h - what a session runs on --------------------------------------===//

#ifndef DUALPIPE_RUNTIME_BACKEND_H
#define DUALPIPE_RUNTIME_BACKEND_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/CpuDevice.h"
#include "dualpipe/Runtime/Device.h"
#include "dualpipe/Runtime/LocalTransport.h"
#include "dualpipe/Runtime/Recording.h"
#include "dualpipe/Runtime/StepGraph.h"
#include "dualpipe/Runtime/Transport.h"

#include <memory>

namespace dualpipe::runtime {

/// Makes the device and the transport of each rank of a process.
class Backend {
public:
  virtual ~Backend() = default;

  /// A rank's own. The parts go in the order of their destruction: last to first.
  struct Ends {
    std::unique_ptr<Device> device;
    std::shared_ptr<void> math; ///< what calls get as dp_call::runtime; may be null
    std::unique_ptr<Transport> transport;
    std::unique_ptr<StepGraph> graph{}; ///< null where steps are issued
  };
  /// Each rank once, from one thread. What is given outlives the ends, and so does the backend.
  /// `recorder` takes the times of commands; it may be null.
  virtual Result<Ends> connect(const program::RankProgram &rank, const Model &model,
                               FailureSink &failures, RankRecorder *recorder) = 0;
};

/// Threads of this process.
class CpuBackend : public Backend {
public:
  /// `shared` outlives the backend.
  CpuBackend(const program::SharedInfo &shared, const CpuDeviceOptions &options)
      : hub(shared), options(options) {}
  Result<Ends> connect(const program::RankProgram &rank, const Model &model, FailureSink &failures,
                       RankRecorder *recorder) override;

private:
  LocalHub hub;
  CpuDeviceOptions options;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_BACKEND_H
