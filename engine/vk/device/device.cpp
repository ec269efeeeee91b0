#include <halfstep/device.h>

#include <utility>

#include "vk/device/context.h"

namespace halfstep {

Device::Device(std::shared_ptr<vk::Context> context) : context_(std::move(context)) {}

Device Device::open(std::string_view selector, const DeviceSettings& settings) {
  return Device(vk::Context::open(selector, settings));
}

Device Device::adopt(const AdoptedDevice& handles, const DeviceSettings& settings) {
  return Device(vk::Context::adopt(handles, settings));
}

std::vector<DeviceInfo> Device::list(const DeviceSettings& settings) {
  return vk::Context::list(settings);
}

void Device::wait_for(std::span<const QueueSemaphore> semaphores) const {
  vk::context_of(*this).wait_for(semaphores);
}

void Device::signal(std::span<const QueueSemaphore> semaphores) const {
  vk::context_of(*this).signal(semaphores);
}

const DeviceInfo& Device::info() const {
  return vk::context_of(*this).info();
}

}  // namespace halfstep
