#pragma once

#include <array>
#include <cstdint>

#include "plan/lowering.h"

namespace halfstep::ops {

/// How a kernel that includes shaders/common/rows.glsl is distributed: one row of a tensor for each `lanes`
/// invocations.
struct RowSpread {
  std::uint32_t local_size = 1;
  std::uint32_t lanes = 1;  ///< a power of two, at most local_size
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::int64_t rounds = 0;  ///< loop rounds of an invocation
};

/// For a kernel that reads a row `passes` times. One lane a row on a software driver, elsewhere as many as have four
/// quads each; more if a row takes more loop rounds than the driver allows. `rounds` exceeds that limit if all of a
/// workgroup do not suffice.
RowSpread spread_rows(const plan::Lowering& out, const plan::Layout& layout, std::int64_t passes);

}  // namespace halfstep::ops
