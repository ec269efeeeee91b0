#include <halfstep/encodings.h>
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/array.h"
#include "reference/hash_grid.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::Kind;

namespace {

/// A small grid of `levels` levels, of which the coarser ones are dense.
HashGridOptions small(std::int64_t levels, std::int64_t features) {
  return {.levels = levels, .features = features, .log2_hashmap_size = 6, .base_resolution = 2, .per_level_scale = 1.6};
}

Check grid_check(Array positions, const HashGridOptions& options) {
  const std::int64_t size = hash_grid_size(positions.shape[1], options);
  return {.name = "hash_grid " + to_string(positions.shape) + " F=" + std::to_string(options.features) +
                  " L=" + std::to_string(options.levels),
          .build = [=](std::span<const Tensor> x) { return hash_grid(x[0], x[1], options); },
          .inputs = {{std::move(positions), Kind::state}, {testing::uniform(Shape{size}, 2)}},
          .reference = [=](std::span<const Array> x) { return reference::hash_grid(x[0], x[1], options); },
          // A coordinate times the cells along an axis is rounded, and its fraction keeps the error.
          .arithmetic = 1e-5};
}

/// The gradient of the table {size}: `result` is linear in it.
Array table_gradient(const Array& positions, const Array& dy, std::int64_t size, const HashGridOptions& options) {
  Array gradient({size});
  Array one({size});
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    one.values[i] = 1;
    const Array y = reference::hash_grid(positions, one, options);
    for (std::size_t j = 0; j < y.values.size(); ++j) gradient.values[i] += y.values[j] * dy.values[j];
    one.values[i] = 0;
  }
  return gradient;
}

}  // namespace

TEST_CASE("hash_grid: any number of coordinates, features and levels") {
  testing::check_operator(grid_check(testing::uniform({37, 2}, 1, 0, 1), small(5, 2)));
  testing::check_operator(grid_check(testing::uniform({5, 1}, 1, 0, 1), small(3, 1)));
  testing::check_operator(grid_check(testing::uniform({33, 3}, 1, 0, 1), small(4, 4)));
  testing::check_operator(grid_check(testing::uniform({1, 2}, 1, 0, 1), small(1, 8)));
  testing::check_operator(grid_check(testing::uniform({19, 3}, 1, 0, 1), small(5, 1)));
  testing::check_operator(grid_check(testing::uniform({9, 4}, 1, 0, 1), small(2, 2)));
  testing::check_operator(grid_check(testing::uniform({130, 2}, 1, 0, 1), small(7, 2)));
}

TEST_CASE("hash_grid: positions on the edges, outside and NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array positions({8, 2}, {0, 0, 1, 1, 0, 1, 0.5, 1, -0.25, 0.5, 1.5, 2, 0.25, nan, 0.5, 0.5});
  testing::check_operator(grid_check(positions, small(4, 2)));
}

TEST_CASE("gradient of hash_grid: the table's") {
  for (const auto& [shape, options] :
       {std::pair{Shape{37, 2}, small(5, 2)}, std::pair{Shape{5, 1}, small(3, 1)}, std::pair{Shape{33, 3}, small(3, 4)},
        std::pair{Shape{11, 2}, small(2, 8)}, std::pair{Shape{9, 4}, small(2, 2)}}) {
    Check check = grid_check(testing::uniform(shape, 1, 0, 1), options);
    const std::int64_t size = hash_grid_size(shape[1], options);
    check.gradients = [=, options = options](std::span<const Array> x, const Array& dy) {
      return std::vector{table_gradient(x[0], dy, size, options)};
    };
    testing::check_gradient(check);
  }
}

TEST_CASE("gradient of hash_grid: the positions', which are f32") {
  for (const auto& [shape, options] : {std::pair{Shape{37, 2}, small(5, 2)}, std::pair{Shape{5, 1}, small(3, 1)},
                                       std::pair{Shape{33, 3}, small(3, 4)}, std::pair{Shape{11, 2}, small(2, 8)},
                                       std::pair{Shape{9, 4}, small(2, 2)}, std::pair{Shape{9, 4}, small(2, 8)}}) {
    Check check = grid_check(testing::rounded(testing::uniform(shape, 3, 0.01, 0.99), DType::f32), options);
    check.inputs[0].kind = Kind::floating;
    check.dtypes = {DType::f32};
    check.arithmetic = 3e-5;
    testing::check_gradient(check);
  }
}

TEST_CASE("gradient of hash_grid: numbers of very different magnitude, infinities and NaN") {
  const HashGridOptions options = small(1, 1);
  const std::int64_t size = hash_grid_size(2, options);
  for (const double first : {1e30, 3e-36, 0.0, 1e-20, std::numeric_limits<double>::infinity()}) {
    // The result is scaled, so that its gradient is 1e-8 times `first` in rows but the first.
    const Array scales = testing::rounded(Array({4, 1}, {first, first * 1e-8, -first * 1e-8, first}), DType::f32);
    Check check{.name = "scaled hash_grid",
                .build = [=](std::span<const Tensor> x) { return mul(hash_grid(x[1], x[0], options), x[2]); },
                .inputs = {{testing::uniform(Shape{size}, 2)},
                           {Array({4, 2}, {0.125, 0.25, 0.75, 0.875, 0.5, 0.0, 1.0, 1.0}), Kind::state},
                           {scales, Kind::state}},
                .reference = [=](std::span<const Array> x) { return reference::hash_grid(x[1], x[0], options); },
                .dtypes = {DType::f32}};
    check.gradients = [=](std::span<const Array> x, const Array& dy) {
      Array scaled = dy;
      for (std::size_t i = 0; i < 4; ++i) scaled.values[i] *= scales.values[i];
      if (std::isfinite(first)) return std::vector{table_gradient(x[1], scaled, size, options)};
      return std::vector{Array({size}, std::numeric_limits<double>::quiet_NaN())};
    };
    testing::check_gradient(check);
  }
}

TEST_CASE("gradient of hash_grid: terms 2^36 times smaller than the largest keep their 24 bits") {
  const HashGridOptions options = small(1, 1);
  const double least = std::ldexp(1.0, -36);
  Check check{.name = "hash_grid at its vertices",
              .build =
                  [=](std::span<const Tensor> x) {
                    const Tensor loss = sum(mul(hash_grid(x[1], x[0], options), x[2]));
                    const graph::ValueId wanted[] = {x[0].id()};
                    graph::Ir& ir = graph::ir_of(loss);
                    return mul(ir.tensor(passes::add_backward(ir, loss.id(), x[4].id(), wanted)[0]), x[3]);
                  },
              .inputs = {{testing::uniform(Shape{3}, 2)},
                         {Array({3, 1}, {0, 0.5, 1}), Kind::state},
                         {Array({3, 1}, {1, -0.7 / (1 << 20), 1.1 * least}), Kind::state},
                         {Array({3}, {1, 1 << 20, 1 / least}), Kind::state},
                         {Array({}, 1.0), Kind::state}},
              .reference =
                  [](std::span<const Array>) {
                    return Array({3}, {1, -0.7, 1.1});
                  },
              .arithmetic = 1.2e-7,
              .dtypes = {DType::f32}};
  testing::check_operator(check);
}

TEST_CASE("gradient of hash_grid: a million positions in one cell") {
  const std::int64_t count = 1'000'003;
  const HashGridOptions options = small(1, 1);
  const std::int64_t size = hash_grid_size(1, options);
  Check check{.name = "hash_grid at one position",
              .build = [=](std::span<const Tensor> x) { return sum(hash_grid(x[1], x[0], options)); },
              .inputs = {{testing::uniform(Shape{size}, 2)}, {Array({count, 1}, 0.125), Kind::state}},
              .reference = [](std::span<const Array>) { return Array({}); },
              .arithmetic = 0,
              .dtypes = {DType::f32}};
  check.gradients = [=](std::span<const Array>, const Array& dy) {
    const double n = static_cast<double>(count) * dy.values[0];
    return std::vector{Array({size}, {std::round(0.75 * n * 8) / 8, std::round(0.25 * n * 8) / 8, 0})};
  };
  testing::check_gradient(check);
}

TEST_CASE("hash_grid says what it cannot take") {
  Graph graph;
  const Tensor positions = graph.input("positions", {5, 2});
  const HashGridOptions options = small(3, 2);
  const Tensor table = graph.input("table", {hash_grid_size(2, options)});
  CHECK_THROWS_WITH_AS(hash_grid(table, table, options), "[hash_grid] expected positions {n, d}, got f32 {122}", Error);
  CHECK_THROWS_WITH_AS(hash_grid(graph.input("wide", {5, 5}), table, options),
                       "[hash_grid] expected 1 to 4 coordinates, got 5", Error);
  CHECK_THROWS_WITH_AS(
      hash_grid(cast(positions, DType::f16), table, options),
      "[hash_grid] expected positions f32, got f16 {5, 2}. Hint: f16 rounds coordinates to a coarse grid", Error);
  CHECK_THROWS_AS(hash_grid(positions, positions, options), Error);
  CHECK_THROWS_WITH_AS(hash_grid_size(2, {.levels = 25}), "[hash_grid] expected 1 to 24 levels, got 25", Error);
  CHECK_THROWS_WITH_AS(hash_grid_size(2, {.features = 3}), "[hash_grid] expected 1, 2, 4 or 8 features, got 3", Error);
  CHECK_THROWS_AS(hash_grid_size(2, {.log2_hashmap_size = 25}), Error);
  CHECK_THROWS_AS(hash_grid_size(2, {.base_resolution = 0}), Error);
  CHECK_THROWS_AS(hash_grid_size(2, {.per_level_scale = 0.5}), Error);
  CHECK_THROWS_AS(hash_grid_size(2, {.per_level_scale = std::nan("")}), Error);
  CHECK_THROWS_WITH_AS(hash_grid_size(2, {.per_level_scale = 3}),
                       "[hash_grid] expected at most 2^20 cells along an axis, got 2834352 in level 11", Error);
}
