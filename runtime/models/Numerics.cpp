//===- Numerics.cpp - sums and steps in a fixed order ------------------------===//

#include "dualpipe/Runtime/Numerics.h"

#include "runtime/kernels/DeviceMath.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dualpipe::runtime {
namespace {

bool isReal(DLDataType type, uint8_t bits) {
  return type.code == kDLFloat && type.bits == bits && type.lanes == 1;
}

/// Sums block by block, so that a block stays in cache while the copies are added to it; the order
/// of the additions of each element is that of the copies.
template <typename T>
void sumTensors(std::span<StageCopy *const> copies, uint32_t index, int64_t count) {
  constexpr int64_t kBlock = 4096;
  T sum[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t size = std::min(kBlock, count - begin);
    for (size_t member = 0; member < copies.size(); ++member) {
      const T *grad = static_cast<const T *>(copies[member]->getGrad(index).data) + begin;
      for (int64_t i = 0; i < size; ++i)
        sum[i] = member == 0 ? grad[i] : sum[i] + grad[i];
    }
    for (StageCopy *copy : copies)
      std::memcpy(static_cast<T *>(copy->getGrad(index).data) + begin, sum,
                  size_t(size) * sizeof(T));
  }
}

template <typename T> void descendTensor(DLTensor &param, const DLTensor &grad, double rate) {
  T *values = static_cast<T *>(param.data);
  const T *slope = static_cast<const T *>(grad.data);
  T factor = T(rate);
  int64_t count = getNumElements(param);
  for (int64_t i = 0; i < count; ++i)
    values[i] -= factor * slope[i];
}

Status rejectType(const char *what, const StageCopy &copy, uint32_t index) {
  return Status::failure(fmt::format("cannot {} parameter {} of stage {}: expected float32 or "
                                     "float64, got {}",
                                     what, index, copy.getStage(),
                                     describeType(copy.getParam(index).dtype)));
}

/// The type of a parameter that a device can update and sum.
Result<kernels::Element> getElement(const char *what, const StageCopy &copy, uint32_t index) {
  const DLDataType type = copy.getParam(index).dtype;
  if (isReal(type, 32))
    return kernels::Element::F32;
  if (isReal(type, 64))
    return kernels::Element::F64;
  return rejectType(what, copy, index);
}

kernels::DeviceMath &getMath(const dp_call &call) {
  return *static_cast<kernels::DeviceMath *>(call.runtime);
}
cuda::Stream getStream(const dp_call &call) { return static_cast<cuda::Stream>(call.stream); }

} // namespace

size_t getElementBytes(DLDataType type) {
  size_t bits = size_t(type.bits) * type.lanes;
  return bits % 8 == 0 ? bits / 8 : 0;
}

int64_t getNumElements(const DLTensor &tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    count *= tensor.shape[i];
  return count;
}

size_t getNumBytes(const DLTensor &tensor) {
  return size_t(getNumElements(tensor)) * getElementBytes(tensor.dtype);
}

std::string describeType(DLDataType type) {
  const char *code = "type";
  switch (type.code) {
  case kDLInt:
    code = "int";
    break;
  case kDLUInt:
    code = "uint";
    break;
  case kDLFloat:
    code = "float";
    break;
  case kDLBfloat:
    code = "bfloat";
    break;
  }
  std::string text = fmt::format("{}{}", code, type.bits);
  return type.lanes == 1 ? text : fmt::format("{}x{}", text, type.lanes);
}

Result<kernels::Element> getGradientType(const StageCopy &copy, uint32_t index) {
  return getElement("sum the gradients of", copy, index);
}

Status sumGradients(std::span<StageCopy *const> copies) {
  if (copies.size() < 2)
    return Status::success();
  for (uint32_t index = 0; index < copies[0]->getNumParams(); ++index) {
    const DLTensor &first = copies[0]->getGrad(index);
    if (isReal(first.dtype, 32))
      sumTensors<float>(copies, index, getNumElements(first));
    else if (isReal(first.dtype, 64))
      sumTensors<double>(copies, index, getNumElements(first));
    else
      return rejectType("sum the gradients of", *copies[0], index);
  }
  return Status::success();
}

Status sumGradients(std::span<StageCopy *const> copies, const dp_call &call) {
  if (call.device.device_type == kDLCPU)
    return sumGradients(copies);
  if (copies.size() < 2)
    return Status::success();
  std::vector<void *> members(copies.size());
  for (uint32_t index = 0; index < copies[0]->getNumParams(); ++index) {
    const DLTensor &first = copies[0]->getGrad(index);
    Result<kernels::Element> type = getGradientType(*copies[0], index);
    if (!type.ok())
      return type.getStatus();
    for (size_t i = 0; i < copies.size(); ++i)
      members[i] = copies[i]->getGrad(index).data;
    if (Status status =
            getMath(call).sumMembers(getStream(call), *type, members, getNumElements(first));
        !status.ok())
      return status;
  }
  return Status::success();
}

Status descend(StageCopy &copy, const dp_call &call) {
  if (call.device.device_type == kDLCPU)
    return descend(copy, call.step_state->learning_rate);
  for (uint32_t index = 0; index < copy.getNumParams(); ++index) {
    const DLTensor &param = copy.getParam(index);
    Result<kernels::Element> type = getElement("update", copy, index);
    if (!type.ok())
      return type.getStatus();
    if (Status status =
            getMath(call).descend(getStream(call), *type, param.data, copy.getGrad(index).data,
                                  call.step_state, getNumElements(param));
        !status.ok())
      return status;
  }
  return Status::success();
}

Status descend(StageCopy &copy, double learningRate) {
  for (uint32_t index = 0; index < copy.getNumParams(); ++index) {
    DLTensor &param = copy.getParam(index);
    if (isReal(param.dtype, 32))
      descendTensor<float>(param, copy.getGrad(index), learningRate);
    else if (isReal(param.dtype, 64))
      descendTensor<double>(param, copy.getGrad(index), learningRate);
    else
      return rejectType("update", copy, index);
  }
  return Status::success();
}

} // namespace dualpipe::runtime
