#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/gemm/gemm_kernels.h"

/// The kernels that compute a register tile with each subgroup, for software drivers: shaders/gemm/gemm_subgroup.glsl,
/// gemm_thin.glsl and gemm_runs.glsl.
namespace halfstep::ops {

/// A kernel of shaders/gemm/gemm.comp. It reads narrow types in 32-bit words: see there.
GemmKernel plain(const Problem& problem, std::string_view body, std::uint32_t local_size, std::int64_t tile_rows,
                 std::int64_t tile_columns);

/// Register tiles shared by a subgroup, if there is a kernel for the subgroup size of a software driver. The thin one
/// loads A more often; measurements show that it is faster if half of the wide one's columns would be padding.
std::vector<GemmKernel> subgroup_tiles(const plan::Target& target, const Problem& problem);

}  // namespace halfstep::ops
