#include <halfstep/encodings.h>
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;

namespace {

using Features = std::function<std::vector<double>(const double*, std::size_t)>;

/// Each row of the result from a row of coordinates. They are f32 in every precision, and so are the results.
Array rows_of(const Array& x, const Features& features) {
  const std::size_t dimensions = x.extent(1);
  std::vector<double> all;
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    const std::vector<double> some = features(&x.values[row * dimensions], dimensions);
    all.insert(all.end(), some.begin(), some.end());
  }
  const auto columns = static_cast<std::int64_t>(all.size() / x.extent(0));
  return Array({x.shape[0], columns}, all);
}

Check encoding_check(const char* name, Array x, std::function<Tensor(Tensor)> build, const Features& features) {
  return {.name = name,
          .build = [=](std::span<const Tensor> inputs) { return build(inputs[0]); },
          .inputs = {{testing::rounded(x, DType::f32)}},
          .reference = [=](std::span<const Array> inputs) { return rows_of(inputs[0], features); },
          .dtypes = {DType::f32}};
}

Check frequency_check(Array x, std::int64_t octaves) {
  return encoding_check(
      "frequency", std::move(x), [=](Tensor t) { return frequency_encoding(t, octaves); },
      [=](const double* row, std::size_t dimensions) {
        std::vector<double> y;
        for (std::size_t d = 0; d < dimensions; ++d) {
          for (int i = 0; i < octaves; ++i) {
            y.push_back(std::sin(std::ldexp(std::numbers::pi, i) * row[d]));
            y.push_back(std::cos(std::ldexp(std::numbers::pi, i) * row[d]));
          }
        }
        return y;
      });
}

/// The integral of 15/16 (1 - u^2)^2 from -1 to u.
double kernel_below(double u) {
  u = std::clamp(u, -1.0, 1.0);
  return 15.0 / 16 * (u - 2 * u * u * u / 3 + std::pow(u, 5) / 5) + 0.5;
}

Check one_blob_check(Array x, std::int64_t bins) {
  return encoding_check(
      "one_blob", std::move(x), [=](Tensor t) { return one_blob_encoding(t, bins); },
      [=](const double* row, std::size_t dimensions) {
        std::vector<double> y;
        for (std::size_t d = 0; d < dimensions; ++d) {
          for (int i = 0; i < bins; ++i) {
            const double begin = i - row[d] * static_cast<double>(bins);
            y.push_back(kernel_below(begin + 1) - kernel_below(begin));
          }
        }
        return y;
      });
}

double factorial(int n) {
  return std::tgamma(n + 1.0);
}

/// By the associated Legendre functions of the standard library, which have no factor (-1)^m, and the angle. As a
/// polynomial in z, x and y it does not see the length of {x, y}.
double harmonic(int l, int m, double x, double y, double z) {
  const int order = std::abs(m);
  const double s = std::sqrt(1 - z * z);
  const double polynomial = std::assoc_legendre(static_cast<unsigned>(l), static_cast<unsigned>(order), z) /
                            std::pow(s, order) * (order % 2 == 0 ? 1 : -1);
  const double k = std::sqrt((2 * l + 1) / (4 * std::numbers::pi) * factorial(l - order) / factorial(l + order));
  const double length = std::pow(std::hypot(x, y), order);
  const double angle = order * std::atan2(y, x);
  const double sides = m == 0 ? 1 : std::numbers::sqrt2 * length * (m > 0 ? std::cos(angle) : std::sin(angle));
  return k * polynomial * sides;
}

Array directions(std::int64_t count) {
  Array x = testing::uniform({count, 3}, 7);
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    double* v = &x.values[3 * row];
    const double length = std::hypot(v[0], v[1], v[2]);
    for (int i = 0; i < 3; ++i) v[i] /= length;
  }
  return x;
}

Check harmonics_check(std::int64_t count, std::int64_t degrees) {
  Check check = encoding_check(
      "spherical_harmonics", directions(count), [=](Tensor t) { return spherical_harmonics(t, degrees); },
      [=](const double* row, std::size_t /*dimensions*/) {
        std::vector<double> y;
        for (int l = 0; l < degrees; ++l) {
          for (int m = -l; m <= l; ++m) y.push_back(harmonic(l, m, row[0], row[1], row[2]));
        }
        return y;
      });
  check.arithmetic = 3e-6;
  return check;
}

}  // namespace

TEST_CASE("frequency_encoding, and its gradient") {
  testing::check_operator(frequency_check(testing::uniform({33, 3}, 1), 6));
  testing::check_operator(frequency_check(testing::uniform({5, 1}, 1, -100, 100), 3));
  testing::check_operator(frequency_check(testing::uniform({7, 4}, 1), 24));
  testing::check_gradient(frequency_check(testing::uniform({9, 2}, 1), 4));
  testing::check_gradient(frequency_check(testing::uniform({3, 4}, 1), 5));
}

TEST_CASE("one_blob_encoding, and its gradient") {
  testing::check_operator(one_blob_check(testing::uniform({33, 3}, 1, -0.1, 1.1), 16));
  testing::check_operator(one_blob_check(testing::uniform({5, 1}, 1, 0, 1), 1));
  testing::check_operator(one_blob_check(testing::uniform({7, 4}, 1, 0, 1), 7));
  testing::check_gradient(one_blob_check(testing::uniform({9, 2}, 1, 0, 1), 8));
}

TEST_CASE("spherical_harmonics, and their gradient") {
  if (testing::context().target().max_rounds < 65'535) return;  // they refuse so few loop rounds
  testing::check_operator(harmonics_check(33, 4));
  testing::check_operator(harmonics_check(5, 1));
  testing::check_operator(harmonics_check(7, 8));
  testing::check_gradient(harmonics_check(9, 3));
  testing::check_gradient(harmonics_check(3, 8));
}

TEST_CASE("encodings in narrow types: the coordinates stay f32, and the features are rounded as they are stored") {
  for (Check check : {frequency_check(testing::uniform({33, 2}, 1), 6), one_blob_check(testing::uniform({33, 2}, 1), 6),
                      harmonics_check(33, 2)}) {
    check.inputs[0].kind = testing::Kind::state;
    check.inputs.push_back({testing::uniform({1}, 3)});
    check.build = [build = check.build](std::span<const Tensor> x) { return mul(cast(build(x), x[1].dtype()), x[1]); };
    check.reference = [features = check.reference](std::span<const Array> x) {
      Array y = features(x);
      for (double& v : y.values) v *= x[1].values[0];
      return y;
    };
    check.dtypes = {DType::f16, DType::bf16};
    check.roundings = 2;
    testing::check_operator(check);
  }
}

TEST_CASE("encodings say what they cannot take") {
  Graph graph;
  const Tensor x = graph.input("x", {5, 2});
  CHECK_THROWS_WITH_AS(frequency_encoding(x, 25), "[frequency] expected 1 to 24 octaves, got 25", Error);
  CHECK_THROWS_WITH_AS(frequency_encoding(graph.input("v", {5})),
                       "[frequency] expected coordinates {n, d}, got f32 {5}", Error);
  CHECK_THROWS_WITH_AS(one_blob_encoding(x, 0), "[one_blob] expected 1 to 256 bins, got 0", Error);
  CHECK_THROWS_WITH_AS(one_blob_encoding(graph.input("wide", {5, 5})), "[one_blob] expected 1 to 4 coordinates, got 5",
                       Error);
  CHECK_THROWS_WITH_AS(spherical_harmonics(x), "[spherical_harmonics] expected directions {n, 3}, got f32 {5, 2}",
                       Error);
  CHECK_THROWS_WITH_AS(
      one_blob_encoding(cast(x, DType::f16)),
      "[one_blob] expected coordinates f32, got f16 {5, 2}. Hint: f16 rounds coordinates to a coarse grid", Error);
}
