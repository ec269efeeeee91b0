#include "reference/hash_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace halfstep::reference {
namespace {

/// One level, with the index of its first entry.
struct Level {
  std::int64_t cells = 1;
  std::size_t first = 0;
  std::size_t entries = 0;
  bool dense = false;
};

std::vector<Level> levels_of(std::size_t dimensions, const HashGridOptions& options) {
  std::vector<Level> levels;
  std::size_t first = 0;
  const std::size_t most = std::size_t{1} << options.log2_hashmap_size;
  double cells = static_cast<double>(options.base_resolution);
  for (std::int64_t l = 0; l < options.levels; ++l, cells *= options.per_level_scale) {
    Level level{.cells = static_cast<std::int64_t>(std::floor(cells * (1 + 1e-9))), .first = first};
    const double vertices = std::pow(static_cast<double>(level.cells + 1), static_cast<double>(dimensions));
    level.dense = vertices <= static_cast<double>(most);
    level.entries = level.dense ? static_cast<std::size_t>(std::llround(vertices)) : most;
    first += level.entries;
    levels.push_back(level);
  }
  return levels;
}

std::size_t entry_of(const Level& level, const std::vector<std::int64_t>& vertex) {
  constexpr std::array<std::uint32_t, 4> primes{1, 2654435761U, 805459861U, 3674653429U};
  std::uint32_t hash = 0;
  std::size_t index = 0;
  for (std::size_t axis = vertex.size(); axis-- > 0;) {
    index = index * static_cast<std::size_t>(level.cells + 1) + static_cast<std::size_t>(vertex[axis]);
    hash ^= static_cast<std::uint32_t>(vertex[axis]) * primes.at(axis);
  }
  return level.first + (level.dense ? index : hash % level.entries);
}

/// Adds a level's interpolated features to `features`.
void interpolate(const Level& level, const double* position, std::size_t dimensions, const Array& table,
                 std::span<double> features) {
  for (std::size_t corner = 0; corner < std::size_t{1} << dimensions; ++corner) {
    double weight = 1;
    std::vector<std::int64_t> vertex(dimensions);
    for (std::size_t axis = 0; axis < dimensions; ++axis) {
      const double at = std::clamp(position[axis], 0.0, 1.0) * static_cast<double>(level.cells);
      const double low = std::min(std::floor(at), static_cast<double>(level.cells - 1));
      const bool up = (corner >> axis & 1U) != 0;
      vertex[axis] = static_cast<std::int64_t>(low) + (up ? 1 : 0);
      weight *= up ? at - low : 1 - (at - low);
    }
    const std::size_t first = entry_of(level, vertex) * features.size();
    for (std::size_t i = 0; i < features.size(); ++i) features[i] += weight * table.values.at(first + i);
  }
}

}  // namespace

Array hash_grid(const Array& positions, const Array& table, const HashGridOptions& options) {
  const std::size_t dimensions = positions.extent(1);
  const auto features = static_cast<std::size_t>(options.features);
  const std::vector<Level> levels = levels_of(dimensions, options);
  Array y({positions.shape[0], static_cast<std::int64_t>(levels.size() * features)});
  for (std::size_t row = 0; row < positions.extent(0); ++row) {
    const double* position = &positions.values[row * dimensions];
    const bool nan = std::any_of(position, position + dimensions, [](double x) { return std::isnan(x); });
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const std::span<double> out(&y.values[(row * levels.size() + l) * features], features);
      if (nan) std::ranges::fill(out, std::numeric_limits<double>::quiet_NaN());
      if (!nan) interpolate(levels[l], position, dimensions, table, out);
    }
  }
  return y;
}

}  // namespace halfstep::reference
