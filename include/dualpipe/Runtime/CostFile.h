//===- CostFile.h - the profile that --cost names ---------------------------===//

#ifndef DUALPIPE_RUNTIME_COSTFILE_H
#define DUALPIPE_RUNTIME_COSTFILE_H

#include <string>
#include <string_view>

namespace dualpipe::runtime {

/// The file that "[FILE.json,]fwd=1,bwd=2" begins with; empty where it begins with a time.
std::string getCostFile(std::string_view text);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_COSTFILE_H
