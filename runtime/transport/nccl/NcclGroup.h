//===- NcclGroup.h - calls of NCCL that begin together ---------------------------===//

#ifndef DUALPIPE_RUNTIME_TRANSPORT_NCCL_NCCLGROUP_H
#define DUALPIPE_RUNTIME_TRANSPORT_NCCL_NCCLGROUP_H

#include "dualpipe/Runtime/Cuda/Api.h"

namespace dualpipe::runtime::cuda {

/// Ends on every path: a group that is left open takes in all later calls of the thread.
class NcclGroup {
public:
  explicit NcclGroup(const NcclApi &nccl) : nccl(nccl), begun(nccl.groupStart()) {}
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;
  ~NcclGroup() {
    if (begun == NcclStatus::Success)
      (void)nccl.groupEnd(); // an error is being reported already
  }

  Status getStatus() const { return check(nccl, begun, "ncclGroupStart"); }
  /// Begins what was called. ncclInProgress is a success: the communicators say more.
  Status end() {
    if (begun != NcclStatus::Success)
      return getStatus();
    begun = NcclStatus::InvalidUsage; // ended
    const NcclStatus status = nccl.groupEnd();
    return status == NcclStatus::InProgress ? Status::success()
                                            : check(nccl, status, "ncclGroupEnd");
  }

private:
  const NcclApi &nccl;
  NcclStatus begun;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_TRANSPORT_NCCL_NCCLGROUP_H
