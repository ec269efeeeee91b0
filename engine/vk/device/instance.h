#pragma once

#include "vk/device/loader.h"

namespace halfstep::vk {

/// Creates a Vulkan 1.1 instance that also lists portability drivers such as MoltenVK. With `validate`, enables the
/// Khronos validation layer with synchronization validation (see vk/device/validation.h). Throws Error if the machine
/// has no Vulkan, or the layer is requested but missing.
InstanceTable create_instance(bool validate);

/// Destroys the result of create_instance; does nothing if `instance` is empty.
void destroy_instance(InstanceTable& instance) noexcept;

}  // namespace halfstep::vk
