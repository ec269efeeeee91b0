#pragma once

#include <halfstep/device.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace halfstep::vk {

/// The index in `devices` of the one that `selector` selects, as described at Device::open. Throws Error if there is
/// none, or it cannot be used.
std::size_t select_device(std::span<const DeviceInfo> devices, std::string_view selector);

}  // namespace halfstep::vk
