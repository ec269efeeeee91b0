#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "plan/target.h"

namespace halfstep::ops {

/// How a kernel that includes shaders/common/columns.glsl is distributed: each of `parts` partial results is computed
/// from `lanes * terms` terms at most.
struct ColumnSpread {
  std::uint32_t local_size = 1;
  std::uint32_t lanes = 1;     ///< invocations that share a quad of a result: a power of two
  std::uint32_t together = 1;  ///< adjacent quads of a workgroup: likewise. Both are 1: the kernel is flat
  std::uint32_t terms = 0;     ///< of a lane; 0: any number
  std::int64_t parts = 1;

  /// Loop rounds of an exchange between lanes.
  std::int64_t rounds() const { return lanes == 1 ? 0 : std::bit_width(lanes); }

  /// Workgroups for `results` results of `quads` quads each.
  std::array<std::uint32_t, 3> groups(const plan::Target& target, std::int64_t results, std::int64_t quads) const;
};

/// For a GPU, where each round of a loop waits for memory: results of `quads` quads from `terms` terms each, of which a
/// lane reads at most `most` together. `adjacent` quads of the results, where there are as many, are computed by one
/// workgroup, whose lanes then read that many at once. Both are powers of two.
ColumnSpread spread_columns(const plan::Target& target, std::int64_t quads, std::int64_t terms, std::uint32_t most,
                            std::uint32_t adjacent);

}  // namespace halfstep::ops
