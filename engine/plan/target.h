#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace halfstep::plan {

/// How shaders reach f16 tensors; the bytes in memory are the same.
enum class Storage16 : std::uint8_t {
  native,  ///< as 16-bit buffer elements
  packed,  ///< as halves of 32-bit words, for devices without 16-bit storage
};

/// A product of fragments that a device's matrix units can do: f16 {rows, k} times {k, columns}.
struct MatrixShape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t k = 0;
  bool float16_sums = false;  ///< what it adds up in, and gives, is f16 rather than f32

  auto operator<=>(const MatrixShape&) const = default;
};

/// What lowering and planning need to know of a device: plain numbers, so that both run with no GPU.
struct Target {
  Storage16 storage16 = Storage16::packed;
  bool words16 = false;  ///< f16 is reached as 32-bit words whatever storage16 is: faster on software drivers
  bool float16_arithmetic = false;
  bool cpu = true;                  ///< a software driver: no shared-memory tiles, no f16 arithmetic
  std::uint32_t subgroup_size = 0;  ///< the size every full subgroup has; 0 where it varies or cannot be relied on
  bool subgroup_shuffle = false;
  bool subgroup_broadcast = false;
  std::uint32_t max_invocations = 128;
  std::array<std::uint32_t, 3> max_groups{65535, 65535, 65535};
  std::uint32_t shared_memory_bytes = 16384;
  std::uint32_t max_push_bytes = 128;
  /// Loop rounds that one invocation may run, those of all its loops added up. A driver that has such a limit ends the
  /// loops there, and the results are wrong; see vk::max_loop_rounds.
  std::uint32_t max_rounds = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t max_storage_range = std::uint64_t{1} << 27;
  std::uint32_t offset_alignment = 256;  ///< of a storage buffer binding
  std::uint32_t max_storage_buffers = 4;
  std::uint32_t max_texels = 0;            ///< quads of a texel buffer; 0 where storage buffers are read as fast
  bool uniform_loads = false;              ///< what all invocations load from one address is as cheap as a constant
  std::uint32_t wanted_groups = 4;         ///< workgroups that keep the device busy
  std::uint32_t compute_units = 1;         ///< that run workgroups side by side; an estimate
  std::vector<MatrixShape> matrix_shapes;  ///< that may be used; empty where there are no matrix units
  std::string gemm_bodies;  ///< what the names of the matrix product's bodies are to begin with; any where empty
  std::map<std::string, std::string> choices;  ///< for Choice::key, the name of the candidate to take
  bool fusion = true;                          ///< elementwise operators join the kernels before and after them
};

}  // namespace halfstep::plan
