//===- Main.h - the schedule compiler as a function -------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_MAIN_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_MAIN_H

namespace dualpipe::opt {

/// The whole of `dualpipe-opt`. Returns the exit code: 0 when it worked, 1 with a
/// diagnostic when it did not.
int main(int argc, char **argv);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_MAIN_H
