#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/elementwise.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

using Unary = Tensor (*)(Tensor);
using Function = double (*)(double);

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Check unary(const char* name, Unary build, Function f, Array x) {
  return {.name = name,
          .build = [=](std::span<const Tensor> inputs) { return build(inputs[0]); },
          .inputs = {{std::move(x)}},
          .reference = [=](std::span<const Array> inputs) { return reference::map(inputs[0], f); }};
}

double exact_gelu(double x) {
  return x / 2 * std::erfc(-x * std::numbers::sqrt2 / 2);
}
double approximate_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
Tensor gelu_of(Tensor x) {
  return gelu(x);
}
Tensor gelu_tanh_of(Tensor x) {
  return gelu(x, Gelu::tanh);
}
double power_of(double x) {
  return std::pow(x, 2.5);
}
Tensor pow_of(Tensor x) {
  return pow(x, 2.5F);
}
Tensor cube_of(Tensor x) {
  return pow(x, 3);
}

/// Every function of one number, with numbers from its domain.
std::vector<Check> unaries(const Shape& shape) {
  const Array x = uniform(shape, 1, -3, 3);
  const Array positive = uniform(shape, 2, 0.2, 4);
  return {unary("exp", exp, std::exp, x),
          unary("log", log, std::log, positive),
          unary("sqrt", sqrt, std::sqrt, positive),
          unary("abs", abs, std::abs, x),
          unary("sin", sin, std::sin, x),
          unary("cos", cos, std::cos, x),
          unary("pow", pow_of, power_of, positive),
          unary(
              "cube", cube_of, [](double v) { return v * v * v; }, x),
          unary("gelu", gelu_of, exact_gelu, x),
          unary("gelu_tanh", gelu_tanh_of, approximate_gelu, x)};
}

/// f32 results of a function of one f32 tensor on a device's first target.
std::vector<float> results_of(Unary build, const std::vector<float>& x) {
  Graph graph = testing::settled_graph();
  const Tensor input = graph.input("x", {static_cast<std::int64_t>(x.size())});
  const Tensor y = build(input);
  step::Execution execution(testing::context(), graph.ir(), {y.id()});
  execution.set(input.id(), x);
  execution.run();
  return execution.floats(y.id());
}

/// Numbers of every magnitude between two powers of 2, with random significands.
std::vector<float> magnitudes(int low, int high, bool negative_too) {
  const Array random = uniform({4000}, 7, 1, 2);
  std::vector<float> x;
  for (std::size_t i = 0; i < random.values.size(); ++i) {
    const double v = std::ldexp(random.values[i], low + static_cast<int>(i) % (high - low));
    x.push_back(static_cast<float>(negative_too && i % 3 == 0 ? -v : v));
  }
  return x;
}

/// The largest error of f32 results relative to the true ones, as far as those are normal numbers of f32.
double largest_relative_error(Unary build, Function f, const std::vector<float>& x) {
  const std::vector<float> got = results_of(build, x);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = f(static_cast<double>(x[i]));
    if (std::abs(want) < 0x1p-126 || std::abs(want) > 0x1.fffffep127) continue;
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) / want - 1));
  }
  return largest;
}

void check_special(const char* name, Unary build, const std::vector<double>& x, const std::vector<double>& y) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  testing::check_operator({.name = name,
                           .build = [=](std::span<const Tensor> inputs) { return build(inputs[0]); },
                           .inputs = {{Array(shape, x)}},
                           .reference = [=](std::span<const Array>) { return Array(shape, y); }});
}

/// The gradient of the sum of `build` of x, against `gradient`.
void check_slope(const char* name, Unary build, const std::vector<double>& x, const std::vector<double>& gradient) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  testing::check_operator({.name = name,
                           .build =
                               [=](std::span<const Tensor> inputs) {
                                 const Tensor y = build(inputs[0]);
                                 const graph::ValueId wanted[] = {inputs[0].id()};
                                 graph::Ir& ir = graph::ir_of(y);
                                 return ir.tensor(passes::add_backward(ir, sum(y).id(), inputs[1].id(), wanted)[0]);
                               },
                           .inputs = {{Array(shape, x)}, {Array({}, 1.0)}},
                           .reference = [=](std::span<const Array>) { return Array(shape, gradient); }});
}

using Binary = Tensor (*)(Tensor, Tensor);

Check pair(const char* name, Binary build, double (*f)(double, double), Array a, Array b) {
  return {.name = name,
          .build = [=](std::span<const Tensor> x) { return build(x[0], x[1]); },
          .inputs = {{std::move(a)}, {std::move(b)}},
          .reference = [=](std::span<const Array> x) { return reference::zip(x[0], x[1], f); }};
}

Binary pow_of_two() {
  return [](Tensor a, Tensor b) { return pow(a, b); };
}

const std::vector<std::pair<Shape, Shape>> broadcasts{{{3, 5}, {3, 5}}, {{2, 1, 5}, {7, 1}}};

}  // namespace

TEST_CASE("functions of one number and their gradients") {
  for (const Shape& shape : {Shape{3, 5}, Shape{1031}}) {
    for (Check check : unaries(shape)) {
      CAPTURE(check.name);
      testing::check_operator(check);
      check.roundings = 3;
      check.magnitude = 4;
      if (elements(shape) < 100) testing::check_gradient(check);
    }
  }
}

TEST_CASE("functions of one number are exact to a few units in the last place, at every magnitude") {
  CHECK(largest_relative_error(exp, std::exp, magnitudes(-30, 6, true)) < 3e-7);
  CHECK(largest_relative_error(log, std::log, magnitudes(-126, 127, false)) < 3e-7);
  CHECK(largest_relative_error(sqrt, std::sqrt, magnitudes(-126, 127, false)) < 4e-7);
  CHECK(largest_relative_error(gelu_of, exact_gelu, magnitudes(-30, 2, true)) < 1e-6);
  CHECK(largest_relative_error(gelu_tanh_of, approximate_gelu, magnitudes(-30, 1, true)) < 1e-6);
  CHECK(largest_relative_error(pow_of, power_of, magnitudes(-50, 50, false)) < 4e-7);
  CHECK(largest_relative_error(
            cube_of, [](double v) { return v * v * v; }, magnitudes(-42, 42, true)) < 4e-7);
  // Large exponents multiply the error of a logarithm.
  CHECK(largest_relative_error([](Tensor x) { return pow(x, 100); }, [](double v) { return std::pow(v, 100); },
                               magnitudes(-1, 1, false)) < 4e-7);
  CHECK(largest_relative_error([](Tensor x) { return pow(x, -1.3F); },
                               [](double v) { return std::pow(v, static_cast<double>(-1.3F)); },
                               magnitudes(-90, 90, false)) < 4e-7);
  // Near 1, where the logarithm is small.
  std::vector<float> near_1;
  for (int i = 1; i < 2000; ++i) near_1.push_back(1 + std::ldexp(static_cast<float>(i % 2 == 0 ? i : -i), -16));
  CHECK(largest_relative_error(log, std::log, near_1) < 3e-7);
  CHECK(largest_relative_error([](Tensor x) { return pow(x, 2500); }, [](double v) { return std::pow(v, 2500); },
                               near_1) < 4e-7);
}

TEST_CASE("sine and cosine are exact to 2^-22 for numbers up to 8192, and to 2^-18 up to 65536") {
  const auto check = [&](Unary build, Function f, const std::vector<float>& x, double allowed) {
    const std::vector<float> got = results_of(build, x);
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - f(static_cast<double>(x[i]))));
    }
    CHECK(largest < allowed);
  };
  check(sin, std::sin, magnitudes(-30, 13, true), 0x1p-22);
  check(cos, std::cos, magnitudes(-30, 13, true), 0x1p-22);
  check(sin, std::sin, magnitudes(13, 16, true), 0x1p-18);
  check(cos, std::cos, magnitudes(13, 16, true), 0x1p-18);
}

TEST_CASE("functions of one number at the ends of their domains") {
  check_special("exp", exp, {none, infinity, -infinity, 0, -0.0, 1000, -1000}, {none, infinity, 0, 1, 1, infinity, 0});
  check_special("log", log, {none, infinity, 0, -0.0, 1, -1, -infinity},
                {none, infinity, -infinity, -infinity, 0, none, none});
  check_special("sqrt", sqrt, {none, infinity, 0, 4, -1, -infinity}, {none, infinity, 0, 2, none, none});
  check_special("sin", sin, {none, infinity, -infinity, 0, 4096, 1e9}, {none, none, none, 0, std::sin(4096.0), none});
  check_special("cos", cos, {none, infinity, -infinity, 0, -4096, -1e9}, {none, none, none, 1, std::cos(4096.0), none});
  check_special("abs", abs, {none, infinity, -infinity, -0.0, -2}, {none, infinity, infinity, 0, 2});
  check_special("gelu", gelu_of, {none, infinity, 0, 60000, -60000}, {none, infinity, 0, 60000, 0});
  check_special("gelu_tanh", gelu_tanh_of, {none, infinity, 0, 60000, -60000}, {none, infinity, 0, 60000, 0});
  check_special("pow", pow_of, {none, infinity, 0, 1, 4, -1, -infinity}, {none, infinity, 0, 1, 32, none, infinity});
  check_special("reciprocal", [](Tensor x) { return pow(x, -1); }, {none, infinity, -infinity, 0, -0.0, -4},
                {none, 0, 0, infinity, -infinity, -0.25});
  check_special("zeroth power", [](Tensor x) { return pow(x, 0); }, {none, infinity, 0, -3}, {1, 1, 1, 1});
}

TEST_CASE("gradients of functions of one number at the ends of their domains are PyTorch's") {
  check_slope("sqrt", sqrt, {0, 4}, {infinity, 0.25});
  check_slope("log", log, {0, 2}, {infinity, 0.5});
  check_slope("abs", abs, {0, -0.0, 3, -3}, {0, 0, 1, -1});
  check_slope("gelu", gelu_of, {0, 60000, -60000}, {0.5, 1, 0});
  check_slope("gelu_tanh", gelu_tanh_of, {0, 60000, -60000}, {0.5, 1, 0});
  check_slope("square", [](Tensor x) { return pow(x, 2); }, {0, -3, 2}, {0, -6, 4});
  check_slope("identity", [](Tensor x) { return pow(x, 1); }, {0, -3, 2}, {1, 1, 1});
  check_slope("zeroth power", [](Tensor x) { return pow(x, 0); }, {0, -3, 2}, {0, 0, 0});
  check_slope("hardswish", hardswish, {-3, 3, 0, -4, 4}, {0, 1, 0.5, 0, 1});
}

TEST_CASE("powers, the larger and the smaller of two tensors, and their gradients") {
  for (const auto& [a, b] : broadcasts) {
    CAPTURE(to_string(a));
    CAPTURE(to_string(b));
    std::vector<Check> checks{
        pair("pow", pow_of_two(), std::pow, uniform(a, 3, 0.5, 2), uniform(b, 4, -2, 2)),
        pair("maximum", maximum, std::fmax, testing::distinct(a, 5, -1, 1), testing::distinct(b, 6, -0.9, 0.95)),
        pair("minimum", minimum, std::fmin, testing::distinct(a, 7, -1, 1), testing::distinct(b, 8, -0.9, 0.95))};
    for (Check& check : checks) {
      CAPTURE(check.name);
      testing::check_operator(check);
      check.roundings = 3;
      check.magnitude = 8;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("powers of two tensors at the ends of their domain are C's") {
  const std::vector<double> a{-2, -2, -2, 0, 0, -0.0,      -0.0, infinity,  infinity,  -infinity, none,
                              1,  2,  2,  1, 3, -infinity, 0.5,  -infinity, -infinity, -0.0,      -0.0};
  const std::vector<double> b{3,    2,        0.5,  -1,       2, -3, 3,        2,   -2,   3,    0,
                              none, infinity, none, infinity, 0, 2,  infinity, 1.5, -0.5, -0.5, 0.5};
  Array want({22});
  for (std::size_t i = 0; i < a.size(); ++i) want.values[i] = std::pow(a[i], b[i]);
  Check check = pair("pow", pow_of_two(), std::pow, Array({22}, a), Array({22}, b));
  check.reference = [=](std::span<const Array>) { return want; };
  testing::check_operator(check);
  // 2^b, where b times the exponent needs more bits than f32 has.
  Check exact = pair("pow", pow_of_two(), std::pow, Array({4}, {2, 4, 1024, 0.5}), Array({4}, {15, -3.5, 1.5, 12}));
  exact.arithmetic = 2e-7;
  testing::check_operator(exact);
}

TEST_CASE("equal numbers share the gradient of their maximum") {
  for (const Binary build : {Binary(maximum), Binary(minimum)}) {
    testing::check_operator({.name = "ties",
                             .build =
                                 [=](std::span<const Tensor> x) {
                                   const Tensor y = build(x[0], x[1]);
                                   const graph::ValueId wanted[] = {x[0].id(), x[1].id()};
                                   graph::Ir& ir = graph::ir_of(y);
                                   const auto gradients = passes::add_backward(ir, sum(y).id(), x[2].id(), wanted);
                                   return concat({ir.tensor(gradients[0]), ir.tensor(gradients[1])}, 0);
                                 },
                             .inputs = {{Array({3}, {1, -2, 0})}, {Array({3}, {1, -2, -0.0})}, {Array({}, 1.0)}},
                             .reference = [](std::span<const Array>) { return Array({6}, 0.5); }});
  }
}

TEST_CASE("the larger and the smaller of two numbers are NaN if either is") {
  const Array a({4}, {none, 1, infinity, -infinity});
  const Array b({4}, {1, none, 2, 3});
  const auto special = [&](const char* name, Binary build, std::vector<double> want) {
    Check check = pair(name, build, std::fmax, a, b);
    check.reference = [want = std::move(want)](std::span<const Array>) { return Array({4}, want); };
    testing::check_operator(check);
  };
  special("maximum", maximum, {none, none, infinity, 3});
  special("minimum", minimum, {none, none, 2, -infinity});
}

TEST_CASE("comparisons") {
  const auto check_all = [](const Array& a, const Array& b) {
    const auto one = [&](const char* name, Binary build, double (*f)(double, double)) {
      testing::check_operator(pair(name, build, f, a, b));
    };
    one("greater", greater, [](double x, double y) { return x > y ? 1.0 : 0.0; });
    one("greater_equal", greater_equal, [](double x, double y) { return x >= y ? 1.0 : 0.0; });
    one("less", less, [](double x, double y) { return x < y ? 1.0 : 0.0; });
    one("less_equal", less_equal, [](double x, double y) { return x <= y ? 1.0 : 0.0; });
    one("equal", equal, [](double x, double y) { return x == y ? 1.0 : 0.0; });
    one("not_equal", not_equal, [](double x, double y) { return x != y ? 1.0 : 0.0; });
  };
  for (const auto& [a, b] : broadcasts) check_all(testing::whole(a, 9, 3), testing::whole(b, 10, 3));
  check_all(Array({7}, {none, 1, none, infinity, -infinity, 0, infinity}),
            Array({7}, {1, none, none, infinity, infinity, -0.0, 3}));
}

TEST_CASE("where, and its gradients") {
  for (const auto& [a, b] : broadcasts) {
    Check check{.name = "where",
                .build = [](std::span<const Tensor> x) { return where(x[0], x[1], x[2]); },
                .inputs = {{testing::whole(a, 11, 3)}, {uniform(b, 12)}, {uniform(a, 13)}},
                .reference =
                    [](std::span<const Array> x) {
                      const Array taken = reference::zip(x[0], x[1], [](double c, double v) { return c != 0 ? v : 0; });
                      const Array other = reference::zip(x[0], x[2], [](double c, double v) { return c != 0 ? 0 : v; });
                      return reference::zip(taken, other, [](double v, double w) { return v + w; });
                    }};
    testing::check_operator(check);
  }
  // What is not taken has no influence, nor a gradient, even if it is infinite.
  testing::check_operator({.name = "where",
                           .build = [](std::span<const Tensor> x) { return where(x[0], x[1], x[2]); },
                           .inputs = {{Array({4}, {1, 0, none, -0.0})},
                                      {Array({4}, {2, infinity, 3, none})},
                                      {Array({4}, {none, 4, -infinity, 5})}},
                           .reference =
                               [](std::span<const Array>) {
                                 return Array({4}, {2, 4, 3, 5});
                               }});
  Check check{.name = "gradient of where",
              .build = [](std::span<const Tensor> x) { return where(greater(x[0], x[1]), mul(x[0], x[1]), x[1]); },
              .inputs = {{testing::distinct({3, 5}, 14)}, {testing::distinct({5}, 15, -0.9, 0.95)}},
              .reference =
                  [](std::span<const Array> x) {
                    return reference::zip(x[0], x[1], [](double a, double b) { return a > b ? a * b : b; });
                  },
              .roundings = 3};
  check.magnitude = 4;
  testing::check_operator(check);
  testing::check_gradient(check);
}

TEST_CASE("gated units") {
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 3, 4}}) {
    std::vector<Check> checks{
        pair(
            "swiglu", swiglu, [](double g, double x) { return g / (1 + std::exp(-g)) * x; }, uniform(shape, 16, -3, 3),
            uniform(shape, 17)),
        pair(
            "geglu", [](Tensor g, Tensor x) { return geglu(g, x); },
            [](double g, double x) { return exact_gelu(g) * x; }, uniform(shape, 18, -3, 3), uniform(shape, 19))};
    for (Check& check : checks) {
      check.roundings = 3;
      check.magnitude = 4;
      testing::check_operator(check);
      testing::check_gradient(check);
    }
  }
}
