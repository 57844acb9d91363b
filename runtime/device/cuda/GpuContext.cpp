//===- GpuContext.cpp - contexts and events that end by themselves -----------===//

#include "dualpipe/Runtime/Cuda/CudaDevice.h"

#include <fmt/format.h>

namespace dualpipe::runtime::cuda {

Result<GpuContext> GpuContext::create(const DriverApi &driver, int ordinal) {
  DeviceId device = 0;
  if (Status status = check(driver, driver.deviceGet(&device, ordinal),
                            fmt::format("cuDeviceGet of GPU {}", ordinal));
      !status.ok())
    return status;
  Context context = nullptr;
  if (Status status = check(driver, driver.devicePrimaryCtxRetain(&context, device),
                            fmt::format("cuDevicePrimaryCtxRetain on GPU {}", ordinal));
      !status.ok())
    return status;
  return GpuContext(driver, device, ordinal, context);
}

GpuContext::GpuContext(GpuContext &&other) noexcept
    : driver(other.driver), device(other.device), ordinal(other.ordinal), context(other.context) {
  other.context = nullptr;
}

GpuContext::~GpuContext() {
  if (context)
    driver->devicePrimaryCtxRelease(device);
}

Status GpuContext::getAttribute(DeviceAttribute attribute, int &value) const {
  return check(*driver, driver->deviceGetAttribute(&value, attribute, device),
               fmt::format("cuDeviceGetAttribute of GPU {}", ordinal));
}

ContextScope::ContextScope(const GpuContext &gpu) : driver(gpu.getDriver()) {
  status = check(driver, driver.ctxGetCurrent(&previous), "cuCtxGetCurrent");
  if (status.ok())
    status = check(driver, driver.ctxSetCurrent(gpu.get()), "cuCtxSetCurrent");
}

Result<OwnedEvent> OwnedEvent::create(const DriverApi &driver, EventClock clock) {
  Event event = nullptr;
  const unsigned flags = clock == EventClock::None ? kEventDisableTiming : kEventDefault;
  if (Status status = check(driver, driver.eventCreate(&event, flags), "cuEventCreate");
      !status.ok())
    return status;
  return OwnedEvent(driver, event);
}

} // namespace dualpipe::runtime::cuda
