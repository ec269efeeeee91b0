// What tiles on matrix units are given, on devices that none here is.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "ops/gemm/gemm_kernels.h"
#include "plan/target.h"
#include "vk/shader/shaders.h"
#include "vk/shader/variable_bytes.h"

using namespace halfstep;
using ops::GemmKernel;
using ops::Operands;

namespace {

std::vector<GemmKernel> matrix_tiles(Operands operands, bool float8, std::uint32_t subgroup,
                                     std::uint32_t shared_bytes) {
  plan::Target target;
  target.cpu = false;
  target.gemm_kernels = "cooperative";
  target.shared_memory_bytes = shared_bytes;
  target.max_invocations = 1024;
  target.subgroups.size = subgroup;
  target.subgroups.shuffle = true;
  target.matrices_along_k = false;
  const plan::MatrixType type = float8 ? plan::MatrixType::float8 : plan::MatrixType::float16;
  target.matrix_shapes = {{16, 16, 16, false, type}, {16, 8, 8, false, type}};
  return ops::gemm_kernels(
      target, {.operands = operands, .dtype = DType::f16, .float8 = float8, .rows = 4096, .columns = 4096, .k = 4096});
}

/// Bytes of an operand's part of a step, in padded lines along or across k.
std::uint64_t bytes_of_part(const GemmKernel& kernel, bool along_k) {
  const std::uint64_t tile = kernel.constants[4];
  const std::uint64_t step = kernel.constants[5];  // quads
  const std::uint64_t packed = kernel.matrices == plan::MatrixType::float8 ? 2 : 1;
  return 8 * (along_k ? tile * (step / packed + 2) : 4 * step * (tile / 4 / packed + 2));
}

std::uint64_t shared_bytes_of(const GemmKernel& kernel) {
  constexpr std::uint32_t first_of_kernel = 8;  // see shaders/gemm/gemm.glsl
  vk::Constants constants{{0, kernel.local_size}};
  if (kernel.matrices == plan::MatrixType::float8) constants[105] = 1;
  for (std::uint32_t i = 0; i < kernel.constants.size(); ++i) constants[first_of_kernel + i] = kernel.constants[i];
  return vk::variable_bytes(vk::find_shader(kernel.shader).words, constants).shared;
}

}  // namespace

TEST_CASE("the shared memory of tiles on matrix units holds both operands, however they lie") {
  int across_k = 0;
  const auto check = [&](Operands operands, bool float8, std::uint32_t subgroup, std::uint32_t shared_bytes) {
    for (const GemmKernel& kernel : matrix_tiles(operands, float8, subgroup, shared_bytes)) {
      if (!kernel.name.starts_with("cooperative")) continue;
      INFO(name(operands) << " by " << kernel.name << ", subgroups of " << subgroup);
      const bool transposes = kernel.constants[3] != 0;
      const std::uint64_t a = bytes_of_part(kernel, transposes || a_lies_along_k(operands));
      const std::uint64_t b = bytes_of_part(kernel, transposes || b_lies_along_k(operands));
      CHECK(shared_bytes_of(kernel) >= a + b);
      CHECK(shared_bytes_of(kernel) <= shared_bytes);
      if (!transposes && !(a_lies_along_k(operands) && b_lies_along_k(operands))) ++across_k;
    }
  };
  for (int operands = 0; operands <= static_cast<int>(Operands::pixels_row); ++operands) {
    for (const std::uint32_t subgroup : {16U, 32U, 64U}) {
      for (const std::uint32_t bytes : {9216U, 10240U, 16384U, 32768U, 49152U}) {
        for (const bool float8 : {false, true}) check(static_cast<Operands>(operands), float8, subgroup, bytes);
      }
    }
  }
  CHECK(across_k > 100);
}
