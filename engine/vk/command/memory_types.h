#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <vector>

namespace halfstep::vk {

/// How a buffer's memory is used.
enum class Memory : std::uint8_t {
  device,    ///< accessed by shaders only
  upload,    ///< written sequentially by the host, read by copies or shaders
  readback,  ///< written by copies or shaders, read by the host
};

/// The memory types that can be used for an intent, best first, out of those whose bits are set in `allowed`; equally
/// good ones stay in the driver's order, as Vulkan recommends. `shared`: host and device use the same memory, as on
/// integrated GPUs and software drivers; shaders then make do with memory that is not the device's own if the rest is
/// used up.
std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                        Memory intent, bool shared);

}  // namespace halfstep::vk
