//===- StreamTimes.h - when commands ran, by the clock of a GPU -----------------===//
//
// For a recorder: an event with a time before and after every command that has one, and
// one from which all are counted, whose time the host knows. Events keep times only here.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_CUDA_STREAMTIMES_H
#define DUALPIPE_RUNTIME_DEVICE_CUDA_STREAMTIMES_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Recording.h"

#include <functional>
#include <memory>
#include <vector>

namespace dualpipe::runtime::cuda {

class StreamTimes {
public:
  /// In the context that is the thread's own. What is given outlives the object, and the events are
  /// destroyed in that context.
  static Result<std::unique_ptr<StreamTimes>>
  create(const DriverApi &driver, const program::RankProgram &rank, RankRecorder &recorder);

  /// Sets the event from which times are counted, on a stream where nothing stands; `wait` waits
  /// for the stream. The host's time is known to half of the shortest of some tries.
  Status beginStep(Stream stream, const std::function<Status()> &wait);
  DriverStatus mark(Stream stream, uint32_t command, CommandEdge edge);
  /// Once all streams are done: gives the recorder the times of what was marked.
  Status endStep();

private:
  StreamTimes(const DriverApi &driver, const program::RankProgram &rank, RankRecorder &recorder)
      : driver(driver), rank(rank), recorder(recorder) {}
  Result<int64_t> measure(const OwnedEvent &event);

  struct Marks {
    OwnedEvent begin, end;
  };
  const DriverApi &driver;
  const program::RankProgram &rank;
  RankRecorder &recorder;
  std::vector<OwnedEvent> bases; ///< one for each try
  size_t base = 0;
  int64_t baseTime = 0; ///< of the steady clock
  std::vector<Marks> marks;
  std::vector<uint32_t> places; ///< in `marks`, by command; kNone where it takes no time
  std::vector<uint32_t> marked; ///< commands of this step
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_DEVICE_CUDA_STREAMTIMES_H
