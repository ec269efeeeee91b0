#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/matmul.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

/// An f32 sum of k products errs by less than k 2^-24 of the largest result in practice; a few more for cancellation.
double arithmetic(std::int64_t k) {
  return 1e-6 + static_cast<double>(k) * 0x1p-22;
}

struct Sizes {
  std::int64_t m, n, k;
};

/// Inside one tile, at its edges, beyond them; k shorter than a quad, odd, and long enough to be split into parts.
const std::vector<Sizes> sizes{{1, 1, 1},   {7, 13, 5},    {32, 32, 32}, {33, 31, 29}, {3, 70, 17},
                               {65, 9, 67}, {10, 10, 515}, {4, 4, 1030}, {129, 67, 3}};

Check matmul_check(Shape a, Shape b, MatmulOptions options, std::int64_t k) {
  return {.name = fmt::format("matmul {}{} {}{}", to_string(a), options.transpose_a ? "^T" : "", to_string(b),
                              options.transpose_b ? "^T" : ""),
          .build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); },
          .inputs = {{uniform(std::move(a), 1)}, {uniform(std::move(b), 2)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::matmul(x[0], x[1], options); },
          .arithmetic = arithmetic(k)};
}

const std::vector<MatmulOptions> transposes{{false, false}, {false, true}, {true, false}, {true, true}};

Shape matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

Shape batched(Shape batch, const Shape& matrix) {
  batch.insert(batch.end(), matrix.begin(), matrix.end());
  return batch;
}

}  // namespace

TEST_CASE("matmul") {
  for (const auto& [m, n, k] : sizes) {
    for (const MatmulOptions& options : transposes) {
      const Shape a = matrix(m, k, options.transpose_a);
      const Shape b = matrix(k, n, options.transpose_b);
      testing::check_operator(matmul_check(a, b, options, k));
    }
  }
}

TEST_CASE("matmul of batches") {
  for (const MatmulOptions& options : transposes) {
    const Shape a = matrix(7, 9, options.transpose_a);
    const Shape b = matrix(9, 6, options.transpose_b);
    for (const auto& [a_batch, b_batch] : {std::pair<Shape, Shape>{{5}, {5}}, {{2, 3}, {2, 3}}, {{3}, {}}, {{}, {3}}}) {
      testing::check_operator(matmul_check(batched(a_batch, a), batched(b_batch, b), options, 9));
    }
  }
}

TEST_CASE("matmul of more rows than one dimension has workgroups") {
  const plan::Target& target = testing::context().target();
  const std::int64_t tile_rows = target.uniform_loads ? 128 : target.subgroups.size == 4 ? 8 : 32;
  const std::int64_t rows = (std::min<std::int64_t>(target.max_groups[0], 65535) + 1) * tile_rows + 5;
  if (!testing::device_takes(0, static_cast<std::uint64_t>(8 * rows))) return;  // a quad of f16 in each row
  Check check = matmul_check({rows, 1}, {1, 1}, {}, 1);
  check.dtypes = {DType::f16};
  testing::check_operator(check);
}

TEST_CASE("matmul reads subnormal f16") {
  Check check = matmul_check({5, 7}, {7, 3}, {}, 7);
  for (double& value : check.inputs[0].values.values) value *= 0x1p-17;  // spaced by 2^-24 below 2^-14
  for (double& value : check.inputs[1].values.values) value = value < 0 ? -16384 : 16384;
  testing::check_operator(check);
}

TEST_CASE("gradients of matmul") {
  for (const MatmulOptions& options : transposes) {
    const Shape a = matrix(3, 5, options.transpose_a);
    const Shape b = matrix(5, 2, options.transpose_b);
    for (const auto& [a_batch, b_batch] : {std::pair<Shape, Shape>{{}, {}}, {{2}, {2}}, {{3}, {}}, {{}, {3}}}) {
      Check check = matmul_check(batched(a_batch, a), batched(b_batch, b), options, 15);
      check.roundings = 3;  // the cotangent, the product, and its sum over the batch
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("linear") {
  for (const Shape& x : {Shape{5}, Shape{3, 7}, Shape{2, 3, 130}, Shape{2, 1025}}) {
    for (const std::int64_t out : {1, 10, 33}) {
      Check check{.name = fmt::format("linear {} to {}", to_string(x), out),
                  .build = [](std::span<const Tensor> v) { return linear(v[0], v[1], v[2]); },
                  .inputs = {{uniform(x, 1)}, {uniform(Shape{x.back(), out}, 2)}, {uniform(Shape{out}, 3)}},
                  .reference = [](std::span<const reference::Array> v) { return reference::linear(v[0], v[1], v[2]); },
                  .arithmetic = arithmetic(x.back())};
      testing::check_operator(check);
      check.build = [](std::span<const Tensor> v) { return add(linear(v[0], v[1]), v[2]); };
      check.roundings = 2;
      testing::check_operator(check);
    }
  }
}

TEST_CASE("gradients of linear") {
  for (const Shape& x : {Shape{5}, Shape{6, 7}, Shape{2, 3, 4}}) {
    testing::check_gradient(
        {.name = "linear",
         .build = [](std::span<const Tensor> v) { return linear(v[0], v[1], v[2]); },
         .inputs = {{uniform(x, 1)}, {uniform(Shape{x.back(), 3}, 2)}, {uniform(Shape{3}, 3)}},
         .reference = [](std::span<const reference::Array> v) { return reference::linear(v[0], v[1], v[2]); },
         .arithmetic = arithmetic(7),
         .roundings = 2});
  }
}

TEST_CASE("matmul and linear say what does not fit") {
  Graph graph = testing::settled_graph();
  const Tensor a = graph.input("a", {2, 3, 4});
  const Tensor b = graph.input("b", {5, 4, 6});
  const Tensor half = graph.input("half", {4, 6}, DType::f16);
  const Tensor weight = graph.input("weight", {4, 6});
  CHECK_THROWS_WITH_AS(matmul(a, b), "[matmul] expected equal batch axes, got f32 {2, 3, 4} times f32 {5, 4, 6}",
                       Error);
  CHECK_THROWS_WITH_AS(matmul(weight, weight),
                       "[matmul] expected 6 rows of b for 6 columns of a, got 4 in f32 {4, 6} times f32 {4, 6}", Error);
  CHECK_THROWS_AS(matmul(a, half), Error);
  CHECK_THROWS_AS(matmul(graph.input("row", {4}), weight), Error);
  CHECK_THROWS_WITH_AS(linear(graph.input("x", {2, 5}), weight),
                       "[linear] expected x {..., 4} for weight f32 {4, 6}, got f32 {2, 5}", Error);
  CHECK_THROWS_AS(linear(a, weight, graph.input("bias", {4})), Error);
}
