#include "vk/device/promised.h"

#include <halfstep/guest.h>

#include "vk/device/workarounds.h"

namespace halfstep::vk {

void keep_promised(Capabilities& c, const AdoptedDevice& handles) {
  c.storage_16bit = c.storage_16bit && handles.storage_buffer_16bit_access;
  c.float16_arithmetic = c.float16_arithmetic && handles.shader_float16;
  c.float_controls = c.float_controls && handles.shader_float_controls;
  c.subgroup_size_control = c.subgroup_size_control && handles.subgroup_size_control;
  c.buffer_address = c.buffer_address && handles.buffer_device_address;
  c.pipeline_executables = false;
  c.cooperative_matrix = false;  // there is no way to declare these yet
  c.bfloat16_matrices = false;
  c.float8_matrices = false;
  c.mixed_dots = false;
  apply_workarounds(c);
}

}  // namespace halfstep::vk
