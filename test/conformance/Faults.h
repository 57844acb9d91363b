//===- Faults.h - faults that GPUs made of software must catch -------------------===//

#ifndef DUALPIPE_TEST_CONFORMANCE_FAULTS_H
#define DUALPIPE_TEST_CONFORMANCE_FAULTS_H

#include "test/support/Subject.h"

#include <string>

namespace dualpipe::test {

/// Plants every fault of every kind into the program and runs it. Prints a line per kind and each
/// fault that nothing caught; false where there was one.
bool plantFaults(const Subject &subject);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_CONFORMANCE_FAULTS_H
