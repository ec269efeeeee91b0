#include "ops/rows.h"

#include <algorithm>
#include <bit>

namespace halfstep::ops {
namespace {

/// Each pass may be followed by a reduction over the lanes.
std::int64_t rounds_of(std::int64_t quads_per_row, std::uint32_t lanes, std::int64_t passes) {
  return passes * (plan::divided_up(quads_per_row, lanes) + 1 + std::bit_width(lanes));
}

}  // namespace

RowSpread spread_rows(const plan::Lowering& out, const plan::Layout& layout, std::int64_t passes) {
  const plan::Target& target = out.target();
  constexpr std::int64_t quads_each = 4;
  constexpr std::int64_t most_lanes = 64;
  const std::int64_t quads = layout.quads_per_row();
  RowSpread spread;
  spread.local_size = std::bit_floor(flat_local_size(target));
  if (!target.cpu) {
    spread.lanes =
        std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::int64_t>(quads / quads_each, 1, most_lanes)));
  }
  while (spread.lanes < spread.local_size && rounds_of(quads, spread.lanes, passes) > target.max_rounds) {
    spread.lanes *= 2;
  }
  spread.rounds = rounds_of(quads, spread.lanes, passes);
  spread.groups = plan::groups_for(target, layout.rows * spread.lanes, spread.local_size);
  return spread;
}

}  // namespace halfstep::ops
