#include "vk/workarounds.h"

namespace halfstep::vk {

void apply_workarounds(Capabilities& capabilities) {
  // A CPU emulates matrix units, several times slower than it runs plain code.
  const bool emulated = capabilities.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  // Wrong results from some versions, which do not tell themselves apart.
  const bool wrong = capabilities.driver_id == VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS;
  if (emulated || wrong) {
    capabilities.cooperative_matrix = false;
    capabilities.cooperative_matrix_nv2 = false;
  }
}

bool subgroup_size_is_fixed(const Capabilities& capabilities) {
  if (capabilities.min_subgroup_size == capabilities.max_subgroup_size && capabilities.min_subgroup_size != 0)
    return true;
  // Without VK_EXT_subgroup_size_control nothing says so, but these have one size only.
  return capabilities.type == VK_PHYSICAL_DEVICE_TYPE_CPU || capabilities.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

}  // namespace halfstep::vk
