#include <halfstep/device.h>

#include "c/handles.h"

using namespace halfstep;
using namespace halfstep::c;

namespace {

std::optional<bool> choice(hs_choice given) {
  const bool on = chosen(given, false);
  return given == HS_DEFAULT ? std::nullopt : std::optional(on);
}

std::optional<Tuning> tuning(hs_tuning given) {
  switch (given) {
    case HS_TUNING_DEFAULT:
      return std::nullopt;
    case HS_TUNING_OFF:
      return Tuning::off;
    case HS_TUNING_ON:
      return Tuning::on;
    case HS_TUNING_FORCE:
      return Tuning::force;
  }
  fail("device", "expected a value of hs_tuning, got " + std::to_string(static_cast<int>(given)));
}

DeviceSettings settings_of(const hs_device_settings* given) {
  const hs_device_settings read = c::read(given, "device");
  DeviceSettings settings;
  if (read.tier != nullptr) settings.tier = read.tier;
  if (read.gemm != nullptr) settings.gemm = read.gemm;
  if (read.limits != nullptr) settings.limits = read.limits;
  if (read.cache_folder != nullptr) settings.cache_folder = path_of(read.cache_folder, "a folder");
  if (read.submit_milliseconds != 0) settings.submit_milliseconds = read.submit_milliseconds;
  settings.fusion = choice(read.fusion);
  settings.tuning = tuning(read.tuning);
  settings.validation = choice(read.validation);
  settings.may_fork = chosen(read.may_fork, false);
  settings.low_priority = choice(read.low_priority);
  return settings;
}

std::vector<QueueSemaphore> semaphores_of(const hs_queue_semaphore* semaphores, std::size_t count) {
  std::vector<QueueSemaphore> result;
  for (const hs_queue_semaphore& each : list(semaphores, count, "semaphores")) {
    result.push_back({each.semaphore, each.timeline != 0 ? std::optional(each.value) : std::nullopt});
  }
  return result;
}

std::function<void()> calling(void (*function)(void*), void* user) {
  if (function == nullptr) return {};
  return [function, user] { function(user); };
}

/// A C application has to allow it to fork the process, and cannot here.
std::vector<DeviceInfo> listed() {
  return Device::list({.may_fork = false});
}

}  // namespace

hs_device_info c::info_of(const DeviceInfo& device) {
  hs_device_info info{};
  info.index = device.index;
  info.usable = device.usable ? 1 : 0;
  info.memory_bytes = device.memory_bytes;
  write_beginning(device.name, info.name);
  write_beginning(device.type, info.type);
  write_beginning(device.driver, info.driver);
  write_beginning(device.api_version, info.api_version);
  write_beginning(device.tier, info.tier);
  write_beginning(device.reason, info.reason);
  write_beginning(device.queue_priority, info.queue_priority);
  return info;
}

hs_status hs_device_count(uint32_t* count) {
  return guarded([&] { given(count, "a pointer for the count") = static_cast<uint32_t>(listed().size()); });
}

hs_status hs_device_describe(uint32_t index, hs_device_info* info) {
  return guarded([&] {
    const std::vector<DeviceInfo> devices = listed();
    if (index >= devices.size()) {
      fail("device", "expected an index below " + std::to_string(devices.size()) + ", got " + std::to_string(index));
    }
    write(info_of(devices[index]), info, "room for a description");
  });
}

hs_status hs_device_open(const char* selector, const hs_device_settings* settings, hs_device** device) {
  return created(device, [&] { return new hs_device{Device::open(text_or(selector, ""), settings_of(settings))}; });
}

hs_status hs_device_adopt(const hs_adopted_device* handles, const hs_device_settings* settings, hs_device** device) {
  return created(device, [&] {
    const hs_adopted_device read = c::read(&given(handles, "an application's handles"), "device");
    AdoptedDevice adopted;
    adopted.instance = read.instance;
    adopted.physical_device = read.physical_device;
    adopted.device = read.device;
    adopted.queue = read.queue;
    adopted.queue_family = read.queue_family;
    adopted.get_instance_proc_addr = read.get_instance_proc_addr;
    adopted.storage_buffer_16bit_access = read.storage_buffer_16bit_access != 0;
    adopted.shader_float16 = read.shader_float16 != 0;
    adopted.shader_float_controls = read.shader_float_controls != 0;
    adopted.subgroup_size_control = read.subgroup_size_control != 0;
    adopted.buffer_device_address = read.buffer_device_address != 0;
    adopted.allocator = read.allocator;
    adopted.timeline_semaphore = read.timeline_semaphore != 0;
    adopted.debug_utils = read.debug_utils != 0;
    adopted.lock_queue = calling(read.lock_queue, read.queue_user);
    adopted.unlock_queue = calling(read.unlock_queue, read.queue_user);
    return new hs_device{Device::adopt(adopted, settings_of(settings))};
  });
}

hs_status hs_device_get_info(const hs_device* device, hs_device_info* info) {
  return guarded([&] { write(info_of(given(device, "a device").device.info()), info, "room for a description"); });
}

hs_status hs_device_wait_for(const hs_device* device, const hs_queue_semaphore* semaphores, size_t count) {
  return guarded([&] { given(device, "a device").device.wait_for(semaphores_of(semaphores, count)); });
}

hs_status hs_device_signal(const hs_device* device, const hs_queue_semaphore* semaphores, size_t count) {
  return guarded([&] { given(device, "a device").device.signal(semaphores_of(semaphores, count)); });
}

void hs_device_free(hs_device* device) {
  delete device;
}
