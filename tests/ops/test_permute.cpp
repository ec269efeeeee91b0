#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

using Axes = std::vector<std::int64_t>;

Array permuted(const Array& x, const Axes& axes) {
  Shape shape;
  for (const std::int64_t axis : axes) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  Array y(shape);
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::vector<std::int64_t> at = reference::position(shape, i);
    std::vector<std::int64_t> from(at.size());
    for (std::size_t axis = 0; axis < at.size(); ++axis) from[static_cast<std::size_t>(axes[axis])] = at[axis];
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      place = place * x.extent(axis) + static_cast<std::size_t>(from[axis]);
    }
    y.values[i] = x.values[place];
  }
  return y;
}

Check permute_check(const Shape& shape, const Axes& axes) {
  return {.name = "permute " + to_string(shape) + " by " + to_string(axes),
          .build = [=](std::span<const Tensor> x) { return permute(x[0], axes); },
          .inputs = {{testing::distinct(shape, 1)}},
          .reference = [=](std::span<const Array> x) { return permuted(x[0], axes); },
          .arithmetic = 0};
}

const std::vector<std::pair<Shape, Axes>> permutations{
    {{5, 7}, {1, 0}},
    {{8, 4}, {1, 0}},
    {{1, 9}, {1, 0}},
    {{9, 1}, {1, 0}},
    {{2, 3, 5, 7}, {0, 2, 1, 3}},  // heads
    {{2, 3, 5, 7}, {0, 1, 3, 2}},
    {{2, 3, 5, 7}, {3, 2, 1, 0}},
    {{2, 3, 5, 8}, {0, 3, 1, 2}},
    {{2, 3, 4, 6}, {2, 3, 0, 1}},
    {{3, 1, 5, 1}, {2, 1, 3, 0}},
    {{3, 1, 5}, {1, 0, 2}},
    {{2, 3, 2, 3, 2, 3}, {5, 1, 3, 0, 4, 2}},
    {{2, 1, 2, 1, 2, 1, 2, 3, 2}, {8, 6, 4, 2, 0, 1, 3, 5, 7}},
};

/// The part of x along `axis` from `begin` on.
Array part_of(const Array& x, std::size_t axis, std::int64_t begin, std::int64_t size) {
  Shape shape = x.shape;
  shape[axis] = size;
  Array part(shape);
  for (std::size_t i = 0; i < part.values.size(); ++i) {
    std::vector<std::int64_t> at = reference::position(shape, i);
    at[axis] += begin;
    std::size_t place = 0;
    for (std::size_t j = 0; j < at.size(); ++j) place = place * x.extent(j) + static_cast<std::size_t>(at[j]);
    part.values[i] = x.values[place];
  }
  return part;
}

}  // namespace

TEST_CASE("permute") {
  for (const auto& [shape, axes] : permutations) testing::check_operator(permute_check(shape, axes));
  testing::check_operator(permute_check({130, 67, 3}, {1, 2, 0}));
}

TEST_CASE("gradient of permute") {
  for (const auto& [shape, axes] : permutations) {
    Check check = permute_check(shape, axes);
    check.arithmetic = 1e-6;
    testing::check_gradient(check);
  }
}

TEST_CASE("permute copies bits, of labels too, and transpose exchanges two axes") {
  testing::check_operator({.name = "permute of labels",
                           .build = [](std::span<const Tensor> x) { return transpose(x[0]); },
                           .inputs = {{testing::whole({7, 5}, 2, 4'000'000'000), testing::Kind::labels}},
                           .reference =
                               [](std::span<const Array> x) {
                                 return permuted(x[0], {1, 0});
                               },
                           .arithmetic = 0});
  Check check = permute_check({2, 3, 5}, {2, 1, 0});
  check.build = [](std::span<const Tensor> x) { return transpose(x[0], 0, -1); };
  testing::check_operator(check);
}

TEST_CASE("split along every axis, and its gradient") {
  const std::vector<std::pair<Shape, std::size_t>> cases{
      {{6}, 0}, {{5, 6}, 0}, {{5, 6}, 1}, {{2, 6, 5}, 1}, {{2, 6, 8}, 1}, {{2, 3, 4, 6}, 3}, {{2, 1, 6, 2, 3, 5}, 2}};
  for (const auto& [shape, axis] : cases) {
    const auto place = static_cast<std::int64_t>(axis);
    CAPTURE(to_string(shape));
    for (std::size_t wanted = 0; wanted < 3; ++wanted) {
      const Axes sizes = axis == 0 && shape.size() == 2 ? Axes{1, 3, 1} : Axes{1, 3, 2};
      const std::int64_t begin = wanted == 0 ? 0 : wanted == 1 ? 1 : 4;
      Check check{
          .name = "split",
          .build = [=](std::span<const Tensor> x) { return split(x[0], sizes, place)[wanted]; },
          .inputs = {{testing::distinct(shape, 3)}},
          .reference = [=, axis = axis](std::span<const Array> x) { return part_of(x[0], axis, begin, sizes[wanted]); },
          .arithmetic = 0};
      testing::check_operator(check);
      check.arithmetic = 1e-6;
      testing::check_gradient(check);
    }
    // Every part is used: the gradient is theirs, side by side.
    const std::int64_t half = shape[axis] / 2;
    if (shape[axis] % 2 != 0) continue;
    Check check{.name = "product of halves",
                .build =
                    [=](std::span<const Tensor> x) {
                      const std::vector<Tensor> parts = split(x[0], {half, half}, place - x[0].rank());
                      return mul(parts[0], parts[1]);
                    },
                .inputs = {{uniform(shape, 4)}},
                .reference =
                    [=, axis = axis](std::span<const Array> x) {
                      Array y = part_of(x[0], axis, 0, half);
                      const Array other = part_of(x[0], axis, half, half);
                      for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= other.values[i];
                      return y;
                    },
                .roundings = 2};
    testing::check_operator(check);
    testing::check_gradient(check);
  }
}

TEST_CASE("permute, transpose and split say what they cannot take") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3, 5});
  CHECK_THROWS_WITH_AS(permute(x, {0, 1}), "[permute] expected every axis of f32 {2, 3, 5} once, got {0, 1}", Error);
  CHECK_THROWS_WITH_AS(permute(x, {0, 1, 1}), "[permute] expected every axis of f32 {2, 3, 5} once, got {0, 1, 1}",
                       Error);
  CHECK_THROWS_WITH_AS(transpose(x, 0, 3), "[transpose] expected axes of f32 {2, 3, 5}, got 3", Error);
  CHECK_THROWS_WITH_AS(split(x, {1, 1}, 1),
                       "[split] expected positive sizes with a sum of 3, axis 1 of f32 {2, 3, 5}, got {1, 1}", Error);
  CHECK_THROWS_WITH_AS(split(x, {4, -1}, 1), doctest::Contains("[split] expected positive sizes"), Error);
  CHECK_THROWS_WITH_AS(split(x, {}, 1), doctest::Contains("[split] expected positive sizes"), Error);
  CHECK_THROWS_WITH_AS(split(x, {1, 2}, 3), "[split] expected an axis of f32 {2, 3, 5}, got 3", Error);
}
