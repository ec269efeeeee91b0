#include "step/stages.h"

#include <algorithm>

namespace halfstep::step {

std::vector<Stretch> cut(const plan::Target& target, std::uint64_t quads, std::uint64_t widest) {
  // Whole parameters' alignments, so that every stretch starts where a binding may.
  constexpr std::uint64_t unit = 128 / 4;
  const std::uint64_t most = target.max_storage_range / widest / unit * unit;
  std::vector<Stretch> stretches;
  for (std::uint64_t first = 0; first < quads; first += most) {
    stretches.push_back({first, std::min(most, quads - first)});
  }
  return stretches;
}

}  // namespace halfstep::step
