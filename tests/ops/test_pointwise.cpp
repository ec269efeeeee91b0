#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/elementwise.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

/// Shapes with one, two and many axes, with rows that are whole quads and rows that are not.
const std::vector<Shape> shapes{{}, {1}, {7}, {64}, {3, 5}, {2, 3, 4}, {13, 1}, {3, 2, 5, 7}, {1031}};

Check unary(const char* name, Tensor (*build)(Tensor), double (*f)(double), Shape shape, double range) {
  return {.name = name,
          .build = [=](std::span<const Tensor> x) { return build(x[0]); },
          .inputs = {{uniform(std::move(shape), 1, -range, range)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::map(x[0], f); }};
}

Check relu_check(const Shape& shape) {
  return unary(
      "relu", relu, [](double v) { return std::max(v, 0.0); }, shape, 3);
}
Check sigmoid_check(const Shape& shape, double range = 6) {
  return unary(
      "sigmoid", sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, shape, range);
}
Check tanh_check(const Shape& shape, double range = 3) {
  return unary(
      "tanh", tanh, [](double v) { return std::tanh(v); }, shape, range);
}
Check relu6_check(const Shape& shape) {
  return unary(
      "relu6", relu6, [](double v) { return std::clamp(v, 0.0, 6.0); }, shape, 9);
}
constexpr float slope = 0.3F;
Check leaky_relu_check(const Shape& shape) {
  return unary(
      "leaky_relu", [](Tensor x) { return leaky_relu(x, slope); },
      [](double v) { return v > 0 ? v : static_cast<double>(slope) * v; }, shape, 3);
}
Check silu_check(const Shape& shape, double range = 6) {
  return unary(
      "silu", silu, [](double v) { return v / (1 + std::exp(-v)); }, shape, range);
}
Check hardswish_check(const Shape& shape, double range = 5) {
  return unary(
      "hardswish", hardswish, [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; }, shape, range);
}
Check scale_check(const Shape& shape) {
  return unary(
      "scale", [](Tensor x) { return scale(x, -2.75F); }, [](double v) { return -2.75 * v; }, shape, 3);
}

/// Every elementwise operator of one tensor.
std::vector<Check> unaries(const Shape& shape) {
  return {relu_check(shape), relu6_check(shape), leaky_relu_check(shape), sigmoid_check(shape),
          tanh_check(shape), silu_check(shape),  hardswish_check(shape),  scale_check(shape)};
}

Check pair(const char* name, Tensor (*build)(Tensor, Tensor), double (*f)(double, double), Shape a, Shape b) {
  return {.name = name,
          .build = [=](std::span<const Tensor> x) { return build(x[0], x[1]); },
          .inputs = {{uniform(std::move(a), 2, -2, 2)}, {uniform(std::move(b), 3, -2, 2)}},
          .reference = [=](std::span<const reference::Array> x) { return reference::zip(x[0], x[1], f); }};
}

/// Divisors are away from 0, where the error of a quotient is unbounded.
Check quotient(Shape a, const Shape& b) {
  Check check = pair(
      "div", div, [](double x, double y) { return x / y; }, std::move(a), b);
  check.inputs[1] = {uniform(b, 3, 0.5, 2)};
  return check;
}

std::vector<Check> pairs(const Shape& a, const Shape& b) {
  return {pair(
              "add", add, [](double x, double y) { return x + y; }, a, b),
          pair(
              "sub", sub, [](double x, double y) { return x - y; }, a, b),
          pair(
              "mul", mul, [](double x, double y) { return x * y; }, a, b),
          quotient(a, b)};
}

/// Every way of broadcasting: rows, columns, outer and inner axes, scalars, both sides at once.
const std::vector<std::pair<Shape, Shape>> broadcasts{{{3, 5}, {5}},
                                                      {{3, 8}, {8}},
                                                      {{3, 5}, {1}},
                                                      {{3, 5}, {3, 1}},
                                                      {{3, 1}, {1, 6}},
                                                      {{5}, {}},
                                                      {{}, {4, 3}},
                                                      {{2, 3, 5}, {3, 1}},
                                                      {{2, 1, 5}, {7, 1}},
                                                      {{2, 1, 3, 1, 6}, {5, 1, 7, 1}},
                                                      {{1, 1}, {4}},
                                                      {{7, 1, 4}, {1, 3, 4}},
                                                      {{2, 3, 1}, {1}},
                                                      {{1, 9}, {11, 1}},
                                                      {{2, 1, 2, 1, 2, 1}, {2, 1, 2, 1, 2}}};

}  // namespace

TEST_CASE("activations and scale") {
  for (const Shape& shape : shapes) {
    for (const Check& check : unaries(shape)) testing::check_operator(check);
  }
}

TEST_CASE("activations of large numbers do not overflow") {
  testing::check_operator(sigmoid_check({97}, 60000));
  testing::check_operator(tanh_check({97}, 60000));
  testing::check_operator(tanh_check({97}, 0.3));
  for (Check check : {silu_check({97}, 60000), hardswish_check({97}, 60000)}) {
    testing::check_operator(check);
    check.arithmetic = 1e-5;  // differences of large numbers, in the reference
    testing::check_gradient(check);
  }
}

TEST_CASE("activations keep what is not a number") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const reference::Array special({5}, {nan, infinity, -infinity, 0, -0.0});
  const auto special_check = [&](Check check) {
    check.inputs = {{special}};
    testing::check_operator(check);
  };
  special_check(unary(
      "relu", relu, [](double v) { return v <= 0 ? 0.0 : v; }, {5}, 1));
  special_check(unary(
      "relu6", relu6, [](double v) { return v < 0 ? 0.0 : std::min(v, 6.0); }, {5}, 1));
  special_check(leaky_relu_check({5}));
  special_check(unary(
      "leaky_relu of slope 0", [](Tensor x) { return leaky_relu(x, 0); }, [](double v) { return v <= 0 ? 0.0 : v; },
      {5}, 1));
  special_check(silu_check({5}));
  special_check(hardswish_check({5}));
  special_check(sigmoid_check({5}));
  special_check(tanh_check({5}));
}

TEST_CASE("products with 0 and differences of equal numbers keep what is not a number") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const reference::Array special({2, 5}, {nan, infinity, -infinity, 0, -0.0, 1, -1, 2, 1e-7, nan});
  const auto special_check = [&](const char* name, std::function<Tensor(Tensor)> build) {
    testing::check_operator(
        {.name = name,
         .build = [=](std::span<const Tensor> x) { return build(x[0]); },
         .inputs = {{special}},
         .reference =
             [](std::span<const reference::Array> x) { return reference::map(x[0], [](double v) { return v * 0; }); }});
  };
  special_check("scale by 0", [](Tensor x) { return scale(x, 0); });
  special_check("scale by -0", [](Tensor x) { return scale(x, -0.0F); });
  special_check("scale twice", [](Tensor x) { return scale(scale(x, 0.5F), 0); });
  special_check("x - x", [](Tensor x) { return sub(x, x); });
  special_check("x - x, twice", [](Tensor x) { return sub(sub(x, x), scale(x, 0)); });
  special_check("the difference of two equal activations", [](Tensor x) {
    const Tensor half = scale(x, 0.5F);
    return sub(half, half);
  });
}

TEST_CASE("gradients of activations and scale") {
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{2, 3, 4}}) {
    for (Check check : unaries(shape)) {
      check.roundings = 3;  // the result that the gradient is computed from, and the gradient
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("gradients of activations at their kinks are those of the side that is documented, and of NaN PyTorch's") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const reference::Array kinks({7}, {-3, -0.0, 0, 3, 6, nan, -nan});
  const auto kink_check = [&](const char* name, Tensor (*build)(Tensor), double (*gradient)(double)) {
    testing::check_operator(
        {.name = name,
         .build =
             [=](std::span<const Tensor> x) {
               const Tensor y = build(x[0]);
               const graph::ValueId wanted[] = {x[0].id()};
               graph::Ir& ir = graph::ir_of(y);
               return ir.tensor(passes::add_backward(ir, sum(y).id(), x[1].id(), wanted)[0]);
             },
         .inputs = {{kinks}, {reference::Array({}, 1.0)}},
         .reference = [=](std::span<const reference::Array> x) { return reference::map(x[0], gradient); }});
  };
  kink_check("relu", relu, [](double v) { return v <= 0 ? 0.0 : 1.0; });
  kink_check("relu6", relu6, [](double v) { return v <= 0 || v >= 6 ? 0.0 : 1.0; });
  kink_check(
      "leaky_relu", [](Tensor x) { return leaky_relu(x, slope); },
      [](double v) { return v > 0 ? 1.0 : static_cast<double>(slope); });
  kink_check("hardswish", hardswish, [](double v) { return v <= -3 ? 0 : v >= 3 ? 1 : v / 3 + 0.5; });
}

TEST_CASE("arithmetic on one shape") {
  for (const Shape& shape : shapes) {
    for (const Check& check : pairs(shape, shape)) testing::check_operator(check);
  }
}

TEST_CASE("an operand that has every second axis of nine") {
  for (const Check& check : pairs({2, 2, 2, 2, 2, 2, 2, 2, 8}, {2, 1, 2, 1, 2, 1, 2, 1, 8})) {
    testing::check_operator(check);
  }
}

TEST_CASE("arithmetic with broadcasting") {
  for (const auto& [a, b] : broadcasts) {
    for (const Check& check : pairs(a, b)) {
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      testing::check_operator(check);
    }
  }
}

TEST_CASE("gradients of arithmetic") {
  for (const auto& [a, b] : broadcasts) {
    for (Check check : pairs(a, b)) {
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      const bool divides = check.name == "div";
      // The product, and its sum over the repeated axes; for db = -(dy / b) y, the quotient and y before them.
      check.roundings = divides ? 4 : 2;
      check.magnitude = divides ? 4 : 1;  // of the products
      check.inputs[0] = {uniform(a, 5)};  // whose sums do not cancel
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("a tensor used twice is given both gradients") {
  testing::check_gradient(
      {.name = "x * x + x",
       .build = [](std::span<const Tensor> x) { return add(mul(x[0], x[0]), x[0]); },
       .inputs = {{uniform({3, 5}, 4)}},
       .reference =
           [](std::span<const reference::Array> x) { return reference::map(x[0], [](double v) { return v * v + v; }); },
       .roundings = 3});
}

TEST_CASE("bias") {
  for (const Shape& shape : {Shape{5}, Shape{4, 7}, Shape{2, 3, 3, 8}, Shape{300, 3}}) {
    Check check = pair("bias", bias, [](double x, double y) { return x + y; }, shape, {shape.back()});
    testing::check_operator(check);
    check.arithmetic = 4e-6;  // sums of up to 300 terms
    testing::check_gradient(check);
  }
}
