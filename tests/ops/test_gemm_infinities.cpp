// Tests that products with an infinite factor are infinite, by every GEMM kernel: what a kernel reads in place of a k
// past the last, and multiplies by zero, must not make NaN of them.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <limits>
#include <utility>

#include "harness/check.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "reference/conv2d.h"
#include "reference/matmul.h"

using namespace halfstep;
using testing::Check;

namespace {

/// Between 1 and 2, so that no product is infinity times zero.
reference::Array positive(const Shape& shape, std::uint64_t seed) {
  reference::Array values = testing::uniform(shape, seed);
  for (double& value : values.values) value = 1.5 + 0.5 * value;
  return values;
}

/// `values` with infinities at the indices.
reference::Array with_infinities(reference::Array values, std::initializer_list<std::int64_t> at) {
  for (const std::int64_t index : at)
    values.values.at(static_cast<std::size_t>(index)) = std::numeric_limits<double>::infinity();
  return values;
}

}  // namespace

TEST_CASE("every kernel gives infinity for a product with an infinite factor") {
  // k is no multiple of four, nor of a step of any kernel. In the one operand its first and last are infinite, in
  // different rows or columns.
  constexpr std::int64_t rows = 37;
  constexpr std::int64_t columns = 41;
  constexpr std::int64_t k = 67;
  Check check;
  check.name = "matmul";
  check.arithmetic = 3e-5;
  check.dtypes = {DType::f32, DType::f16};
  check.targets = testing::kernel_targets();
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    const auto a_at = [&](std::int64_t row, std::int64_t of_k) {
      return options.transpose_a ? of_k * rows + row : row * k + of_k;
    };
    const auto b_at = [&](std::int64_t of_k, std::int64_t column) {
      return options.transpose_b ? column * k + of_k : of_k * columns + column;
    };
    const reference::Array a = positive(options.transpose_a ? Shape{k, rows} : Shape{rows, k}, 1);
    const reference::Array b = positive(options.transpose_b ? Shape{columns, k} : Shape{k, columns}, 2);
    check.build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); };
    check.reference = [=](std::span<const reference::Array> x) { return reference::matmul(x[0], x[1], options); };
    check.inputs = {{with_infinities(a, {a_at(5, k - 1), a_at(7, 0)})}, {b}};
    testing::check_operator(check);
    check.inputs = {{a}, {with_infinities(b, {b_at(k - 1, 9), b_at(0, 11)})}};
    testing::check_operator(check);
  }
}

TEST_CASE("every kernel gives infinity where a convolution has an infinite factor") {
  // The first and last channel of the first and last pixel, tap or position are infinite. A line of 5 or 7 positions is
  // a segment of k of the weight's gradient. Beside the image, taps read nothing.
  const auto ends = [](const reference::Array& values) {
    return with_infinities(values, {0, static_cast<std::int64_t>(values.values.size()) - 1});
  };
  const Shape images{2, 6, 7, 8};
  const Shape weight{3, 3, 8, 16};
  Check check;
  check.arithmetic = 3e-5;
  check.dtypes = {DType::f32};  // f16 is read as words, as in products
  check.targets = testing::kernel_targets();
  for (const std::int64_t padding : {0, 1}) {
    const Conv2dOptions options{.padding = {padding, padding}};
    const Shape output = ops::Convolution{images, weight, options}.output("test");
    for (const bool in_images : {true, false}) {
      if (padding > 0 && !in_images) continue;  // what of a weight or cotangent that meets no pixel is left open
      const reference::Array x = in_images ? ends(positive(images, 1)) : positive(images, 1);
      const auto other = [&](const Shape& shape) { return in_images ? positive(shape, 2) : ends(positive(shape, 2)); };
      check.name = "conv2d";
      check.build = [=](std::span<const Tensor> from) { return conv2d(from[0], from[1], options); };
      check.reference = [=](std::span<const reference::Array> from) {
        return reference::conv2d(from[0], from[1], options);
      };
      check.inputs = {{x}, {other(weight)}};
      testing::check_operator(check);
      check.name = "weight gradient";
      check.build = [=](std::span<const Tensor> from) {
        return ops::conv2d_weight_gradient(from[0], from[1], weight, options);
      };
      check.reference = [=](std::span<const reference::Array> from) {
        return reference::conv2d_weight_gradient(from[0], from[1], weight, options);
      };
      check.inputs = {{x}, {other(output)}};
      testing::check_operator(check);
    }
  }
}
