#include <halfstep/encodings.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/portable_math.h"
#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using plan::Access;

constexpr std::size_t most_levels = 24;  ///< as in hash_grid.glsl
constexpr double most_cells = 1 << 20;   ///< along an axis: a coordinate in f32 has 4 bits more
constexpr std::int64_t most_dimensions = 4;

/// A grid over coordinates of one number of dimensions.
class Grid {
 public:
  Grid(std::int64_t dimensions, const HashGridOptions& options);

  std::int64_t size() const { return entries_ * options_.features; }
  std::int64_t columns() const { return options_.levels * options_.features; }
  /// Loop rounds to find a level's first entry, and for each of its cell's vertices.
  std::int64_t rounds_per_level() const { return dense_ + 1 + (std::int64_t{1} << dimensions_) + 1; }
  /// How often a position's gradient looks up a cell's vertices: for each quad of a level's features, or all of a
  /// level.
  std::int64_t lookups() const { return options_.levels * std::max<std::int64_t>(1, options_.features / 4); }
  /// Levels of which a quad of results has features.
  std::int64_t levels_per_quad() const { return options_.features < 4 ? 4 / options_.features : 1; }

  graph::Attributes attributes() const {
    return {{"features", options_.features},
            {"log2_hashmap_size", options_.log2_hashmap_size},
            {"resolutions", resolutions_}};
  }
  /// Specialization constants 1 to 5, and the push constants, of shaders/encoding/hash_grid.glsl.
  std::vector<std::uint32_t> constants() const;
  struct Push {
    std::uint32_t rows;
    std::array<std::uint32_t, most_levels> resolutions;
  };
  Push push(std::uint32_t rows) const;

 private:
  std::int64_t dimensions_;
  HashGridOptions options_;
  std::vector<std::int64_t> resolutions_;
  std::int64_t dense_ = 0;  ///< levels whose vertices have features of their own
  std::int64_t entries_ = 0;
};

void check(std::int64_t dimensions, const HashGridOptions& options) {
  const auto expect = [](bool holds, const char* what, auto got) {
    if (!holds) fail("hash_grid", fmt::format("expected {}, got {}", what, got));
  };
  expect(dimensions >= 1 && dimensions <= most_dimensions, "1 to 4 coordinates", dimensions);
  expect(options.levels >= 1 && options.levels <= std::int64_t{most_levels}, "1 to 24 levels", options.levels);
  const std::int64_t f = options.features;
  expect(f == 1 || f == 2 || f == 4 || f == 8, "1, 2, 4 or 8 features", f);
  expect(options.log2_hashmap_size >= 4 && options.log2_hashmap_size <= 24, "a log2_hashmap_size from 4 to 24",
         options.log2_hashmap_size);
  expect(options.base_resolution >= 1, "a base_resolution of at least 1", options.base_resolution);
  expect(options.per_level_scale >= 1, "a per_level_scale of at least 1", options.per_level_scale);
}

Grid::Grid(std::int64_t dimensions, const HashGridOptions& options) : dimensions_(dimensions), options_(options) {
  check(dimensions, options);
  const std::int64_t most_entries = std::int64_t{1} << options.log2_hashmap_size;
  for (std::int64_t level = 0; level < options.levels; ++level) {
    // A scale that was computed as a root is a little below what it stands for.
    const double cells = static_cast<double>(options.base_resolution) *
                         portable::pow(options.per_level_scale, static_cast<double>(level)) * (1 + 1e-9);
    if (cells >= most_cells + 1) {
      fail("hash_grid", fmt::format("expected at most 2^20 cells along an axis, got {:.0f} in level {}", cells, level));
    }
    resolutions_.push_back(static_cast<std::int64_t>(cells));
    const double vertices =
        portable::pow(static_cast<double>(resolutions_.back() + 1), static_cast<double>(dimensions));
    const bool dense = vertices <= static_cast<double>(most_entries);
    dense_ += dense ? 1 : 0;
    entries_ += dense ? std::llround(vertices) : most_entries;
  }
}

std::vector<std::uint32_t> Grid::constants() const {
  return {static_cast<std::uint32_t>(dimensions_), static_cast<std::uint32_t>(options_.levels),
          static_cast<std::uint32_t>(options_.features), static_cast<std::uint32_t>(options_.log2_hashmap_size),
          static_cast<std::uint32_t>(dense_)};
}

Grid::Push Grid::push(std::uint32_t rows) const {
  Push push{rows, {}};
  std::ranges::transform(resolutions_, push.resolutions.begin(),
                         [](std::int64_t cells) { return static_cast<std::uint32_t>(cells); });
  return push;
}

void expect_positions(std::string_view op, const TensorType& type) {
  ops::expect_rank(op, "positions", type, 2, "{n, d}");
  if (type.dtype != DType::f32) {
    fail(std::string(op), fmt::format("expected positions f32, got {}", to_string(type)),
         "f16 rounds coordinates to a coarse grid");
  }
}

/// The gradient {n, d} of the positions, from positions {n, d}, the table and dy {n, levels * features}.
class PositionGradient final : public graph::Operator {
 public:
  explicit PositionGradient(Grid grid) : grid_(std::move(grid)) {}

  std::string name() const override { return "hash_grid_position_gradient"; }
  graph::Attributes attributes() const override { return grid_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    expect_positions(name(), inputs[0]);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    const std::int64_t rows = out.input_type(0).shape[0];
    ops::dispatch_flat(out, ops::variant(out, "hash_grid_position_gradient", out.input_type(2).dtype), rows,
                       grid_.push(ops::index32(out, rows)),
                       {{out.input(0), Access::read},
                        {out.input(1), Access::read},
                        {out.input(2), Access::read},
                        {out.output(0), Access::write}},
                       grid_.constants(), {.rounds = grid_.lookups() * (grid_.rounds_per_level() + 3) + 1});
  }

 private:
  Grid grid_;
};

/// The gradient of the table, from positions {n, d} and dy {n, levels * features}.
class TableGradient final : public graph::Operator {
 public:
  explicit TableGradient(Grid grid) : grid_(std::move(grid)) {}

  std::string name() const override { return "hash_grid_gradient"; }
  graph::Attributes attributes() const override { return grid_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    expect_positions(name(), inputs[0]);
    return {{inputs[1].dtype, {grid_.size()}}};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType dy = out.input_type(1);
    const std::uint32_t rows = ops::index32(out, dy.shape[0]);
    const std::int64_t quads = plan::layout(out.type(out.output(0)).shape).quads();
    // The largest magnitude, then two words for each element.
    const plan::TensorId sums = out.workspace("sums", {DType::u32, {4 + 8 * quads}});
    ops::dispatch_flat(out, "fixed_point_clear", 1 + 2 * quads, ops::index32(out, 1 + 2 * quads),
                       {{sums, Access::write}});
    lower_largest(out, sums);
    const std::int64_t count = plan::layout(dy.shape).quads();
    ops::dispatch_flat(out, ops::variant(out, "hash_grid_gradient", dy.dtype), count, grid_.push(rows),
                       {{out.input(0), Access::read}, {out.input(1), Access::read}, {sums, Access::read_write}},
                       grid_.constants(), {.rounds = grid_.levels_per_quad() * (grid_.rounds_per_level() + 1) + 1});
    struct Push {
      std::uint32_t elements, rows;
    };
    ops::dispatch_flat(out, ops::variant(out, "fixed_point_sums", out.type(out.output(0)).dtype), quads,
                       Push{ops::index32(out, grid_.size()), rows},
                       {{sums, Access::read}, {out.output(0), Access::write}});
  }

 private:
  /// The largest magnitude of dy.
  static void lower_largest(plan::Lowering& out, plan::TensorId sums) {
    struct Push {
      std::uint32_t quads, invocations;
    };
    constexpr std::int64_t quads_each = 16;
    const std::int64_t quads = plan::layout(out.input_type(1).shape).quads();
    const std::int64_t invocations = plan::divided_up(quads, quads_each);
    ops::dispatch_flat(out, ops::variant(out, "fixed_point_largest", out.input_type(1).dtype), invocations,
                       Push{ops::index32(out, quads), ops::index32(out, invocations)},
                       {{out.input(1), Access::read}, {sums, Access::read_write}}, {}, {.rounds = quads_each + 1});
  }

  Grid grid_;
};

class HashGrid final : public graph::Operator {
 public:
  explicit HashGrid(Grid grid) : grid_(std::move(grid)) {}

  std::string name() const override { return "hash_grid"; }
  graph::Attributes attributes() const override { return grid_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    expect_positions(name(), inputs[0]);
    ops::expect_float(name(), "a table", inputs[1]);
    if (inputs[1].shape != Shape{grid_.size()}) {
      fail(name(),
           fmt::format("expected a table {{{}}} for these options, got {}", grid_.size(), to_string(inputs[1].shape)),
           "hash_grid_size() says how many elements it has");
    }
    return {{inputs[1].dtype, {inputs[0].shape[0], grid_.columns()}}};
  }

  // dtable = for each entry, the sum of weight * dy over the cells that it is a vertex of
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor dy = *call.cotangents[0];
    graph::Gradients gradients(2);
    if (call.needed[0]) gradients[0] = ops::apply<PositionGradient>({call.inputs[0], call.inputs[1], dy}, grid_);
    if (call.needed[1]) gradients[1] = ops::apply<TableGradient>({call.inputs[0], dy}, grid_);
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    const TensorType& type = out.type(out.output(0));
    const std::int64_t quads = plan::layout(type.shape).quads();
    ops::index32(out, std::max(grid_.size(), 4 * quads));
    std::vector<std::uint32_t> constants = grid_.constants();
    constants.insert(constants.begin(), flat_local_size(out.target()));
    out.dispatch(
        {.label = {},
         .shader = ops::variant(out, "hash_grid", type.dtype),
         .constants = std::move(constants),
         .push = plan::push_bytes(grid_.push(ops::index32(out, type.shape[0]))),
         .operands = {{out.input(0), Access::read}, {out.input(1), Access::read}, {out.output(0), Access::write}},
         .groups = plan::groups_for(out.target(), quads, flat_local_size(out.target())),
         .rounds = grid_.levels_per_quad() * (grid_.rounds_per_level() + 1) + 1,
         .expression = ops::result_expression(out, out.output(0), 2, 3)});
  }

 private:
  Grid grid_;
};

}  // namespace

std::int64_t hash_grid_size(std::int64_t dimensions, const HashGridOptions& options) {
  return Grid(dimensions, options).size();
}

Tensor hash_grid(Tensor positions, Tensor table, const HashGridOptions& options) {
  ops::expect_rank("hash_grid", "positions", positions.type(), 2, "{n, d}");
  return ops::apply<HashGrid>({positions, table}, Grid(positions.dim(1), options));
}

}  // namespace halfstep
