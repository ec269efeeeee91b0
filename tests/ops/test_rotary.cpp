#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

/// The angles of rotary positions, in double.
Array rotated(const Array& x, std::size_t axis, const RotaryOptions& options) {
  const auto columns = static_cast<std::size_t>(x.shape.back());
  const std::size_t pairs = columns / 2;
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < x.shape.size(); ++i) inner *= x.extent(i);
  const auto width = static_cast<double>(columns);
  const double base = static_cast<double>(options.base) *
                      std::pow(static_cast<double>(options.base_scale), width / std::max(width - 2, 1.0));
  const bool halves = options.pairs == RotaryPairs::halves;
  Array y(x.shape);
  for (std::size_t row = 0; row < x.values.size() / columns; ++row) {
    const std::size_t index = row * columns / inner % x.extent(axis);
    const double position = static_cast<double>(options.position_scale) *
                            static_cast<double>(index + static_cast<std::size_t>(options.offset));
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double angle = position * std::pow(base, -2 * static_cast<double>(pair) / width);
      const std::size_t first = row * columns + (halves ? pair : 2 * pair);
      const std::size_t second = row * columns + (halves ? pair + pairs : 2 * pair + 1);
      y.values[first] = x.values[first] * std::cos(angle) - x.values[second] * std::sin(angle);
      y.values[second] = x.values[first] * std::sin(angle) + x.values[second] * std::cos(angle);
    }
  }
  return y;
}

Check rotary_check(const Shape& shape, const RotaryOptions& options) {
  const auto axis = static_cast<std::size_t>(options.axis < 0 ? options.axis + static_cast<std::int64_t>(shape.size())
                                                              : options.axis);
  return {.name = "rotary " + to_string(shape),
          .build = [=](std::span<const Tensor> x) { return rotary(x[0], options); },
          .inputs = {{uniform(shape, 3)}},
          .reference = [=](std::span<const Array> x) { return rotated(x[0], axis, options); }};
}

}  // namespace

TEST_CASE("rotary positions and their gradients") {
  for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::interleaved}) {
    for (const Shape& shape :
         {Shape{3, 2}, Shape{5, 6}, Shape{2, 7, 8}, Shape{2, 3, 5, 12}, Shape{3, 64}, Shape{4, 10}}) {
      const Check check = rotary_check(shape, {.pairs = pairs});
      testing::check_operator(check);
      testing::check_gradient(check);
    }
    RotaryOptions options{.pairs = pairs, .base = 500, .position_scale = 0.25F, .base_scale = 4, .offset = 11};
    testing::check_operator(rotary_check({2, 7, 8}, options));
    testing::check_gradient(rotary_check({2, 7, 8}, options));
    options.axis = 1;  // {batch, positions, heads, c}
    testing::check_operator(rotary_check({2, 7, 3, 8}, options));
    testing::check_gradient(rotary_check({2, 7, 3, 6}, options));
  }
}

TEST_CASE("rotary positions in the millions are as exact as the first") {
  for (const std::int64_t offset : {std::int64_t{131'071}, std::int64_t{16'777'000}}) {
    Check check = rotary_check({37, 128}, {.offset = offset});
    check.dtypes = {DType::f32};
    testing::check_operator(check);
  }
}

TEST_CASE("rotary says what it cannot take") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 6});
  CHECK_THROWS_WITH_AS(rotary(graph.input("odd", {2, 5})),
                       "[rotary] expected an even last axis of at most 8192, got f32 {2, 5}", Error);
  CHECK_THROWS_WITH_AS(rotary(x, {.axis = 1}),
                       "[rotary] expected an axis of positions before the last of f32 {2, 6}, got 1", Error);
  CHECK_THROWS_WITH_AS(rotary(x, {.base = 0}), doctest::Contains("[rotary] expected a positive base"), Error);
  CHECK_THROWS_WITH_AS(rotary(x, {.offset = -1}), "[rotary] expected positions from 0 to 16777216, got 2 from -1 on",
                       Error);
}
