#pragma once

#include "vk/device/loader.h"

namespace halfstep::vk {

/// A Vulkan 1.1 instance of our own, with portability drivers such as MoltenVK among its devices. With `validate`, the
/// Khronos validation layer and its synchronization validation watch it (see vk/device/validation.h). Throws Error
/// where the machine has no Vulkan, or not the layer.
InstanceTable create_instance(bool validate);

/// Destroys what create_instance made; nothing where `instance` is empty.
void destroy_instance(InstanceTable& instance) noexcept;

}  // namespace halfstep::vk
