#pragma once

#include <cstdint>

/// Numbers of the SPIR-V specification, version 1.6, section 3, as far as the engine and its tests read or write them.
namespace halfstep::vk {

enum Op : std::uint32_t {
#define OPCODE(name, number, operands, effect) op_##name = number,
#include "vk/shader/opcodes.def"
#undef OPCODE
};

enum Capability : std::uint32_t {
  capability_float16 = 9,
  capability_float64 = 10,
  capability_int64 = 11,
  capability_int64_atomics = 12,
  capability_int16 = 22,
  capability_int8 = 39,
  capability_group_non_uniform = 61,
  capability_group_non_uniform_quad = 68,
  capability_float8_type = 4212,
  capability_float8_matrices = 4213,
  capability_storage_16bit = 4433,
  capability_denorm_preserve = 4464,
  capability_rounding_to_zero = 4468,
  capability_bfloat16_type = 5116,
  capability_bfloat16_matrices = 5118,
  capability_memory_model = 5345,
  capability_memory_model_of_device = 5346,
  capability_physical_buffers = 5347,
  capability_matrices = 6022,
  capability_mixed_dots = 6912,
};

enum Decoration : std::uint32_t {
  decoration_spec_id = 1,
  decoration_block = 2,
  decoration_row_major = 4,
  decoration_array_stride = 6,
  decoration_matrix_stride = 7,
  decoration_built_in = 11,
  decoration_binding = 33,
  decoration_descriptor_set = 34,
  decoration_offset = 35,
  decoration_no_contraction = 42,
};

enum StorageClass : std::uint32_t {
  storage_input = 1,
  storage_workgroup = 4,
  storage_private = 6,
  storage_function = 7,
  storage_push_constant = 9,
  storage_physical_buffer = 5349,
};

}  // namespace halfstep::vk
