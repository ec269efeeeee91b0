#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::uniform;

namespace {

/// x {n, g, positions, c}, rows {n, g, count, c}, first {n}.
Array stored(std::span<const Array> x) {
  Array y = x[0];
  const Array& rows = x[1];
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const std::vector<std::int64_t> at = reference::position(rows.shape, i);
    const double position = x[2].values[static_cast<std::size_t>(at[0])] + static_cast<double>(at[2]);
    if (position >= static_cast<double>(y.shape[2])) continue;
    const std::int64_t row = (at[0] * y.shape[1] + at[1]) * y.shape[2] + static_cast<std::int64_t>(position);
    y.values[static_cast<std::size_t>(row * y.shape[3] + at[3])] = rows.values[i];
  }
  return y;
}

void check(const Shape& x, std::int64_t count, std::vector<double> first) {
  const Shape rows{x[0], x[1], count, x[3]};
  const Shape batches{x[0]};
  testing::check_operator(
      {.name = "store_rows " + to_string(x) + " " + to_string(rows),
       .build = [](std::span<const Tensor> t) { return store_rows(t[0], t[1], t[2]); },
       .inputs = {{uniform(x, 1)}, {uniform(rows, 2)}, {Array(batches, std::move(first)), testing::Kind::labels}},
       .reference = stored});
}

}  // namespace

TEST_CASE("store_rows puts rows in their places, and drops those beyond the last") {
  check({1, 1, 1, 1}, 1, {0});
  check({1, 1, 5, 3}, 1, {4});
  check({2, 3, 7, 5}, 1, {6, 0});
  check({3, 2, 7, 8}, 4, {2, 5, 7});
  check({2, 2, 5, 6}, 9, {0, 3});
  check({2, 1, 5, 4}, 2, {4294967295.0, 4294967294.0});
}

TEST_CASE("store_rows names what it cannot store") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3, 7, 5});
  const Tensor first = graph.input("first", {2}, DType::u32);
  const auto rows = [&](const char* name, const Shape& shape) { return graph.input(name, shape); };
  CHECK_THROWS_WITH_AS(store_rows(x, rows("a", {2, 3, 1, 4}), first),
                       "[store_rows] expected rows {n, g, count, c} for f32 {2, 3, 7, 5}, got f32 {2, 3, 1, 4}", Error);
  CHECK_THROWS_WITH_AS(store_rows(x, rows("b", {2, 3, 5}), first),
                       "[store_rows] expected rows {n, g, count, c} for f32 {2, 3, 7, 5}, got f32 {2, 3, 5}", Error);
  CHECK_THROWS_WITH_AS(store_rows(x, rows("c", {2, 3, 1, 5}), graph.input("few", {1}, DType::u32)),
                       "[store_rows] expected first positions u32 {2}, got u32 {1}", Error);
  CHECK_THROWS_WITH_AS(store_rows(rows("d", {2, 5}), rows("e", {2, 5}), first),
                       "[store_rows] expected x {n, g, positions, c}, got f32 {2, 5}", Error);
}
