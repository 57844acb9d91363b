//===- Numerics.h - arithmetic that executor and reference share ------------===//
//
// Whatever the runtime itself adds or subtracts is done here, once, in a fixed
// order, so that a pipelined run and its sequential replay agree bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_NUMERICS_H
#define DUALPIPE_RUNTIME_NUMERICS_H

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dualpipe::kernels {
enum class Element; // runtime/kernels/Element.h
}

namespace dualpipe::runtime {

/// Bytes of one element; 0 for types whose elements are not whole bytes.
size_t getElementBytes(DLDataType type);
/// Elements of a tensor (1 where it has no dimensions).
int64_t getNumElements(const DLTensor &tensor);
size_t getNumBytes(const DLTensor &tensor);
/// "float32", "int8", ...
std::string describeType(DLDataType type);

/// The type of a gradient that a device sums: float32 and float64. Fails with parameter and stage.
Result<kernels::Element> getGradientType(const StageCopy &copy, uint32_t index);

/// The sum over all members of a reduction: every gradient becomes copies[0] + copies[1] + ...,
/// added in that order element by element; all copies end with the same bits. The caller gives the
/// copies of one stage in ascending order of rank. float32 and float64.
Status sumGradients(std::span<StageCopy *const> copies);
/// The same where `call` computes: on the host, or on its stream of the device that has all copies.
Status sumGradients(std::span<StageCopy *const> copies, const dp_call &call);

/// parameters -= learningRate * gradients, element by element. float32 and float64. On the host.
Status descend(StageCopy &copy, double learningRate);
/// The same where `call` computes, with the learning rate of its step state.
Status descend(StageCopy &copy, const dp_call &call);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_NUMERICS_H
