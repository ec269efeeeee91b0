#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attention/attention_pass.h"
#include "plan/target.h"

/// The kernels of shaders/attention/, and which to prefer.
namespace halfstep::ops {

/// The value of a shader's PASS axis.
std::string_view name(AttentionPass pass);

struct AttentionExtents {
  std::int64_t batch, heads, key_heads, queries, keys, c_quads, d_quads;
};

struct AttentionKernel {
  std::string name;    ///< "tile", "units16x16x16"
  std::string shader;  ///< the variant: "attention.forward.f32.tile"
  std::uint32_t local_size = 0;
  std::int64_t own_rows = 0;   ///< of a workgroup
  std::int64_t rows_each = 0;  ///< own rows of an invocation, whose sums it starts
  std::int64_t tile = 0;       ///< other rows at a time
  /// Loop rounds of an invocation: per tile, and for the rest of its work, without the searches for segments.
  std::int64_t tile_rounds = 0;
  std::int64_t other_rounds = 0;
  bool risky = false;                         ///< see plan::Candidate
  std::vector<std::uint32_t> constants = {};  ///< specialization constants after those that all kernels have
};

/// Four numbers of each row that a pass stores, or sums.
std::int64_t result_quads(AttentionPass pass, const AttentionExtents& extents);

/// The kernels to consider for a pass on `target`, the one expected to be fastest first; never empty. A software driver
/// has but one: those for GPUs are slow there. If Target::attention_kernel names one that there is, only that.
std::vector<AttentionKernel> attention_kernels(const plan::Target& target, AttentionPass pass,
                                               const AttentionExtents& extents, DType dtype);

}  // namespace halfstep::ops
