//===- Output.h - the files that a run writes -------------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_OUTPUT_H
#define DUALPIPE_TOOLS_LAUNCHER_OUTPUT_H

#include "Options.h"

#include "dualpipe/Support/Status.h"

namespace dualpipe::launcher {

/// Whether --trace and --profile can be written at the end of the run, told before it: a failure
/// names the file and why. What is there already is left as it is.
Status checkOutputs(const Options &options);

/// Writes a file of the run aside and renames it, so that there is the whole of it or what was
/// there before. `path` has passed checkOutputs().
Status writeOutput(const std::string &path, const std::string &text);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_OUTPUT_H
