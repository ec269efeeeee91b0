#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plan/windows.h"

namespace halfstep::plan {

/// How shaders access f16 tensors; the bytes in memory are the same.
enum class Storage16 : std::uint8_t {
  native,  ///< as 16-bit buffer elements
  packed,  ///< as halves of 32-bit words, for devices without 16-bit storage
};

/// The types of factors that kernels for matrix units have: vk/shader/matrix_types.h.
enum class MatrixType : std::uint8_t {
  float16,
  bfloat16,
  float8,  ///< E4M3, of what is stored as ops/gemm/float8.h says
};

/// A matrix product of fragments that a device's matrix units support: {rows, k} times {k, columns}.
struct MatrixShape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t k = 0;
  bool float16_sums = false;              ///< its accumulator and result are f16 rather than f32
  MatrixType type = MatrixType::float16;  ///< of the factors

  auto operator<=>(const MatrixShape&) const = default;
};

/// How a device takes f16.
struct Float16 {
  Storage16 storage = Storage16::packed;
  bool words = false;  ///< it is read as 32-bit words, whatever `storage` is: faster on software drivers
  bool arithmetic = false;
  bool dots = false;                  ///< it multiplies two pairs and adds both products to an f32 in one instruction
  bool rounding_is_promised = false;  ///< that of its conversion from f32: to nearest, ties to even, subnormals kept
  bool rounded_by_driver = false;     ///< its conversion is used: it gives the bits of Halfstep's own, sooner
};

/// The groups of invocations that exchange values without memory.
struct Subgroups {
  std::uint32_t size = 0;  ///< of every full subgroup; 0 if it varies or is unreliable
  bool shuffle = false;
  bool broadcast = false;

  /// Whether kernels that hand numbers from lane to lane (shaders/common/from_lane.glsl) run, whose tiles are for
  /// subgroups of 8 or 16: those of software drivers.
  bool hand_over() const { return shuffle && broadcast && (size == 8 || size == 16); }
};

/// What lowering and planning need to know about a device: plain numbers, so that both run without a GPU.
struct Target {
  Float16 float16;
  bool cpu = true;  ///< a software driver: no shared-memory tiles, no f16 arithmetic
  Subgroups subgroups;
  std::uint32_t max_invocations = 128;
  std::array<std::uint32_t, 3> max_groups{65535, 65535, 65535};
  std::uint32_t shared_memory_bytes = 16384;
  std::uint32_t max_push_bytes = 128;
  /// Loop rounds that one invocation may run, summed over all its loops. A driver with such a limit ends the loops
  /// there, and the results are wrong; see vk::apply_workarounds.
  std::uint32_t max_rounds = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t max_storage_range = std::uint64_t{1} << 27;
  /// An arena that is larger than the device's largest buffer consists of several, of these bytes each: a power of two.
  /// 0: buffers are as large as wanted.
  std::uint64_t part_bytes = 0;
  std::uint32_t offset_alignment = 256;  ///< of a storage buffer binding
  std::uint32_t max_storage_buffers = 4;
  std::uint32_t max_texels = 0;            ///< quads of a texel buffer; 0 if storage buffers are as fast to read
  bool winograd = true;                    ///< there are kernels for Winograd's convolution
  std::uint32_t vector_registers = 32;     ///< of the processor that a software driver runs on
  bool uniform_loads = false;              ///< a load from one address by all invocations is as cheap as a constant
  double submit_seconds = 0.1;             ///< that a submit may take; see Pieces
  std::uint32_t wanted_groups = 4;         ///< workgroups that keep the device busy
  std::uint32_t compute_units = 1;         ///< that run workgroups in parallel; an estimate
  std::vector<MatrixShape> matrix_shapes;  ///< that may be used; empty if there are no matrix units
  bool matrices_along_k = true;            ///< they read both operands fastest where these lie along k
  /// A software driver computes attention by products up to this size of the scores, which are stored during one
  /// operator only.
  std::uint64_t score_bytes = std::uint64_t{32} << 20;
  std::string gemm_kernels;                    ///< a prefix that the names of GEMM kernels must have; any if empty
  std::string attention_kernel;                ///< the only one, where there is a choice with that; any if empty
  std::string mlp_kernel;                      ///< likewise, for networks of dense layers
  std::map<std::string, std::string> choices;  ///< for Choice::key, the name of the candidate to use
  bool fusion = true;                          ///< elementwise operators are fused with adjacent kernels
  bool reproducible = false;                   ///< see Dispatch::reproducible
};

/// The target of Precision::reproducible: one for all devices, so that kernels, and with them the order of sums, are
/// the same on each. Throws Error where the device falls short of it.
Target reproducible(const Target& device);

/// Whether an invocation that reads one value after another waits for each: on a GPU. So loops over memory are cut
/// shorter there, unless every device is to compute the same.
inline bool waits_for_memory(const Target& target) {
  return !target.cpu && !target.reproducible;
}

/// Whether a tensor of f32 with so many elements, padding included, lies in one buffer, and so has one address.
inline bool has_address(const Target& target, std::uint64_t elements) {
  return elements < elements_end && (target.part_bytes == 0 || elements * sizeof(float) <= target.part_bytes);
}

}  // namespace halfstep::plan
