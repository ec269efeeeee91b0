#pragma once

#include <halfstep/device.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace halfstep::vk {

/// The place in `devices` of the one that `selector` means, as Device::open says. Throws Error where there is none, or
/// it cannot be used.
std::size_t select_device(std::span<const DeviceInfo> devices, std::string_view selector);

}  // namespace halfstep::vk
