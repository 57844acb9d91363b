//===- Together.h - a run with one process per rank ----------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_TOGETHER_H
#define DUALPIPE_TOOLS_LAUNCHER_TOGETHER_H

#include "Options.h"
#include "Report.h"
#include "SelectBackend.h"

#include "dualpipe/Runtime/Processes.h"
#include "dualpipe/Runtime/Session.h"

#include <memory>
#include <vector>

namespace dualpipe::launcher {

/// Waits for the other processes where RANK and WORLD_SIZE say that there are some; null where this
/// one runs all ranks. Fails where the options do not go with them.
Result<std::unique_ptr<runtime::Processes>> meetProcesses(const Options &options);

/// The rank of this process; all ranks at rank 0 where it has to replay them. Fails where processes
/// do not run the same program with the same options.
Result<program::Program> readTogether(const Options &options, runtime::Processes &processes);

/// The GPU of this process, with NCCL to the others. `shared` outlives what is returned.
Result<SelectedBackend> selectTogether(const Options &options, const program::SharedInfo &shared,
                                       runtime::Processes &processes);

/// Rank 0 gets the reports of all ranks, the others nothing. Returns once all sessions stand.
Result<std::vector<RankReport>> gatherReports(runtime::Processes &processes,
                                              const std::vector<RankReport> &own);

/// After the last step. Rank 0 gets what it needs of the others for `options`: with --check the
/// copies of stages, with --json the digests of their weights, which it puts into `digests` by
/// copy; and lets them go. The others answer until then.
Status collectResults(const Options &options, const program::SharedInfo &shared,
                      const runtime::Model &model, runtime::Processes &processes,
                      runtime::RunReport &run, std::vector<uint64_t> &digests);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_TOGETHER_H
