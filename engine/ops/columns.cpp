#include "ops/columns.h"

#include <algorithm>
#include <bit>

#include "plan/lowering.h"

namespace halfstep::ops {
namespace {

/// The least power of two that is at least `value` and at most `most`, which is one.
std::uint32_t power_of_two(std::int64_t value, std::uint32_t most) {
  return std::bit_ceil(static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 1, most)));
}

}  // namespace

std::array<std::uint32_t, 3> ColumnSpread::groups(const plan::Target& target, std::int64_t results,
                                                  std::int64_t quads) const {
  if (lanes * together == 1) return plan::groups_for(target, results * quads, local_size);
  return plan::groups_for(target, results * plan::divided_up(quads, together) * local_size, local_size);
}

ColumnSpread spread_columns(const plan::Target& target, std::int64_t quads, std::int64_t terms, std::uint32_t most,
                            std::uint32_t adjacent) {
  constexpr std::uint32_t occupying = 64;  // invocations of a workgroup
  const std::uint32_t largest = std::bit_floor(plan::flat_local_size(target));
  ColumnSpread spread;
  spread.together = power_of_two(quads, adjacent);
  // Fewer adjacent quads, where the terms are then few enough for one workgroup's lanes.
  const std::int64_t most_terms = std::int64_t{largest} * most;
  while (spread.together > 1 && terms * spread.together > most_terms && terms <= most_terms) spread.together /= 2;
  spread.lanes = power_of_two(plan::divided_up(terms, most), largest / spread.together);
  const std::uint32_t fill = std::max(spread.together, occupying / spread.lanes);
  spread.together = power_of_two(quads, std::min(fill, largest / spread.lanes));
  spread.local_size = spread.lanes * spread.together;
  spread.parts = plan::divided_up(terms, std::int64_t{spread.lanes} * most);
  spread.terms = power_of_two(plan::divided_up(terms, spread.lanes * spread.parts), most);
  return spread;
}

}  // namespace halfstep::ops
