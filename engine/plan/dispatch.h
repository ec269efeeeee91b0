#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "plan/expression.h"
#include "plan/target.h"
#include "plan/windows.h"

namespace halfstep::plan {

/// A tensor of a program: an index into Program::tensors.
using TensorId = std::uint32_t;

enum class Access : std::uint8_t { read, write, read_write };

/// One binding of a dispatch: a storage buffer, or a texel buffer with one texel per quad.
struct Operand {
  TensorId tensor;
  Access access;
  bool texels = false;
  bool address = false;        ///< its device address is also pushed, before the push constants
  bool may_be_texels = false;  ///< where its kernel only loads whole quads of it; set by ProgramBuilder::finish
  /// So many of its bytes at most are accessed, where the kernel looks up parts of it: samples of a set, rows of a
  /// table.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
};

/// How a kernel stores narrow types: constants of shaders/common/storing.glsl. Kernels that store none take no notice.
struct Storing {
  bool stochastic = false;  ///< rounded up or down at random, without bias; otherwise to nearest
  bool saturate = false;    ///< too large a result becomes the largest number; otherwise infinity
  bool scaled = false;  ///< times a scale of the tensor's own; what is finite and too large then becomes the largest
  /// For each narrow tensor that is written, in the order of operands, what its noise is keyed on beside seed, step and
  /// quad; common/storing.glsl makes streams of these for those after the second.
  std::array<std::uint32_t, 2> streams{};
  /// Where `scaled`: likewise its place in the table of scales; 0 for one that is stored as it is.
  std::array<std::uint32_t, 2> scales{};

  friend bool operator==(const Storing&, const Storing&) = default;
};

/// Another kernel for a dispatch whose operands are all f32: with these in place of the members of Dispatch.
struct FormOfF32 {
  std::string shader;
  std::vector<std::uint32_t> constants;
  std::array<std::uint32_t, 3> groups;
  std::uint32_t addressed = 0;  ///< bit i: Operand::address of operand i
};

/// The part of a step that a dispatch belongs to.
enum class Phase : std::uint8_t { feed, forward, backward, update };

/// One compute dispatch as a plain value, independent of Vulkan.
struct Dispatch {
  std::string label;                     ///< what it does, for display: "conv1/conv2d"
  std::string shader;                    ///< variant name: "relu.f16"
  std::vector<std::uint32_t> constants;  ///< specialization constants 0, 1, 2, ...; 0 is local_size_x by convention
  std::vector<std::byte> push;           ///< push constants
  /// Whether the kernel is compiled for just these push constants: where it computes much from sizes. On AMD's and
  /// NVIDIA's GPUs, a division by a number that is not known takes some 20 instructions.
  bool push_is_known = false;
  std::vector<Operand> operands;  ///< operand i is bound at binding i
  Windows windows{};              ///< set by ProgramBuilder::finish
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  /// The largest number of loop rounds that one of its invocations runs, summed over all loops; a loop of n rounds
  /// counts n + 1. Kernels without loops, and those with few rounds at any size, leave it 0.
  std::int64_t rounds = 0;
  Storing storing{};
  /// Elementwise work in addition to, or in place of, the kernel's own work; its arguments are the last operands.
  std::optional<Expression> expression{};
  Phase phase = Phase::forward;
  bool awaited = false;  ///< the last of its submit: the host waits for it, to read what is ready by then
  /// Whether each of the kernel's own operands may be f32 though its variant is for a narrow type, which follows from
  /// all operands when a program is finished: of shaders with STORED in common/mixed_operands.glsl.
  bool mixes = false;
  std::optional<FormOfF32> of_f32{};          ///< taken where none of its operands turns out to be narrow
  MatrixType matrices = MatrixType::float16;  ///< what its shader's matrices of f16 are of
  bool rounded_by_driver = false;             ///< Float16::rounded_by_driver; set by ProgramBuilder
  bool reproducible = false;  ///< in arithmetic that gives the same bits on every device: vk/shader/exact_arithmetic.h
  bool recomputed = false;    ///< recomputes values that were not kept
  double flops = 0;           ///< a multiply-add counts as two; 0 if it only moves data
  /// The SPIR-V of an application's own kernel, which `shader` then names; null: a kernel of the library.
  std::shared_ptr<const std::vector<std::uint32_t>> spirv{};
  bool stores_by_itself = false;  ///< CustomDispatch::stores_by_itself: no rule says how it stores narrow types
};

/// Size of the push constants: the addresses of operands that request it, then Dispatch::push.
inline std::size_t pushed_bytes(const Dispatch& dispatch) {
  std::size_t bytes = dispatch.push.size();
  for (const Operand& operand : dispatch.operands) bytes += operand.address ? sizeof(std::uint64_t) : 0;
  return bytes;
}

/// More bytes of push constants that a dispatch takes of which a part of the workgroups is submitted: the number of the
/// first one.
constexpr std::uint32_t first_group_bytes = sizeof(std::uint32_t);

/// The bytes of a push-constant struct. Every device supports 128 bytes.
template <typename Push>
std::vector<std::byte> push_bytes(const Push& push) {
  static_assert(std::is_trivially_copyable_v<Push> && sizeof(Push) <= 128);
  std::vector<std::byte> bytes(sizeof(Push));
  std::memcpy(bytes.data(), &push, sizeof(Push));
  return bytes;
}

}  // namespace halfstep::plan
