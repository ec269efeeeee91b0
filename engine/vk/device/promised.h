#pragma once

#include "vk/device/capabilities.h"

namespace halfstep {
struct AdoptedDevice;
}

namespace halfstep::vk {

/// Reduces a device's capabilities to those that the application says it enabled, and applies workarounds for what is
/// missing.
void keep_promised(Capabilities& c, const AdoptedDevice& handles);

}  // namespace halfstep::vk
