#pragma once

#include <vector>

#include "ops/gemm/gemm_kernels.h"

/// The GEMM kernels for drivers that load what all invocations read from one address only once: Target::uniform_loads.
namespace halfstep::ops {

/// The usable ones for a problem, the one whose tiles are filled better first; and whether they are expected to be
/// faster than those that need no such loads. Measured on lavapipe of Mesa 26.
struct UniformKernels {
  std::vector<GemmKernel> kernels{};
  bool pay = false;
};

/// Of shaders/gemm/gemm_uniform.glsl: B is packed into panels first, unless it is in f32 and its rows make whole tiles.
UniformKernels uniform_kernels(const plan::Target& target, const Problem& problem);

/// Of shaders/gemm/gemm_outer.glsl, where A's quads lie along its rows.
UniformKernels outer_kernels(const plan::Target& target, const Problem& problem);

}  // namespace halfstep::ops
