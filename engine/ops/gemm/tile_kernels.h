#pragma once

#include <vector>

#include "ops/gemm/gemm_kernels.h"

/// The kernels that bring operands to shared memory, a step of k at a time, for GPUs: shaders/gemm/gemm_tile.glsl,
/// gemm_half.comp, gemm_dots.glsl and gemm_cooperative.glsl. Only those that the device has the memory for.
namespace halfstep::ops {

/// Those that compute in f32.
std::vector<GemmKernel> plain_tiles(const plan::Target& target, const Problem& problem);
/// Those that compute in f16: where the device does, and sums are to be f16.
std::vector<GemmKernel> half_tiles(const plan::Target& target, const Problem& problem);
/// Those that multiply pairs of f16 and sum in f32: where the device has an instruction for that, or they are asked for
/// by name.
std::vector<GemmKernel> dot_tiles(const plan::Target& target, const Problem& problem);
/// Those on matrix units, each of the first fragments that fit it, of 8 bits before 16. Those that transpose operands
/// come first where matrix units read them faster along k, else last. Long steps wait for memory less often: they come
/// first, unless a short one is enough.
std::vector<GemmKernel> matrix_tiles(const plan::Target& target, const Problem& problem);

}  // namespace halfstep::ops
