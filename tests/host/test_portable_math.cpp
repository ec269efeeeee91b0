#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "base/portable_math.h"
#include "harness/bits.h"

namespace halfstep {
namespace {

/// The greatest deviation from the C library's function of 100,000 random arguments from `low` to `high`, in units of
/// the last place.
double greatest_deviation(const std::function<double(double)>& function,
                          const std::function<long double(double)>& known, double low, double high) {
  std::mt19937_64 random(1);
  double greatest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
    const auto wanted = static_cast<double>(known(x));
    const double unit = std::nextafter(std::abs(wanted), HUGE_VAL) - std::abs(wanted);
    greatest = std::max(greatest, std::abs(function(x) - wanted) / unit);
  }
  return greatest;
}

/// Of 100,000 values at random arguments from 0 to 1.
std::uint64_t hash_of(const std::function<double(double)>& function) {
  std::mt19937_64 random(2);
  std::vector<double> values(100'000);
  for (double& value : values) value = function((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53);
  return testing::hash_of_bits(values);
}

long double logarithm(double x) {
  return std::log(static_cast<long double>(x));
}

long double exponential(double x) {
  return std::exp(static_cast<long double>(x));
}

}  // namespace

TEST_CASE("portable functions are as exact as a C library's") {
  CHECK(greatest_deviation(portable::log, logarithm, 0, 1) <= 3);
  CHECK(greatest_deviation(portable::log, logarithm, 0.99, 1.01) <= 3);
  CHECK(greatest_deviation(portable::log, logarithm, 1, 1e9) <= 3);
  CHECK(greatest_deviation(portable::exp, exponential, -1, 1) <= 3);
  CHECK(greatest_deviation(portable::exp, exponential, -700, 700) <= 3);
  constexpr long double pi = std::numbers::pi_v<long double>;
  const auto cosine = [](double x) { return std::cos(2 * pi * static_cast<long double>(x)); };
  const auto sine = [](double x) { return std::sin(2 * pi * static_cast<long double>(x)); };
  CHECK(greatest_deviation(portable::cos_of_turns, cosine, -0.125, 0.125) <= 3);
  CHECK(greatest_deviation(portable::sin_of_turns, sine, -0.125, 0.125) <= 3);
  for (const double x : {0.3, 0.9, 17.7, -5.4}) {
    CHECK(portable::cos_of_turns(x) == doctest::Approx(static_cast<double>(cosine(x))).epsilon(1e-13));
    CHECK(portable::sin_of_turns(x) == doctest::Approx(static_cast<double>(sine(x))).epsilon(1e-13));
    CHECK(portable::pow(std::abs(x), 1.5) == doctest::Approx(std::pow(std::abs(x), 1.5)).epsilon(1e-14));
    CHECK(portable::pow(x, -3) == doctest::Approx(std::pow(x, -3)).epsilon(1e-14));
  }
}

TEST_CASE("portable functions keep to special values") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(portable::log(1) == 0);
  CHECK(portable::log(std::numeric_limits<double>::denorm_min()) == doctest::Approx(-744.44007192138126));
  CHECK(portable::exp(0) == 1);
  CHECK(portable::exp(-infinity) == 0);
  CHECK(portable::exp(infinity) == infinity);
  CHECK(portable::exp(-745) == std::numeric_limits<double>::denorm_min());
  CHECK(std::isnan(portable::exp(std::nan(""))));
  CHECK(portable::pow(0, 0) == 1);
  CHECK(portable::pow(0, 0.5) == 0);
  CHECK(portable::pow(0.3, 1) == 0.3);
  CHECK(portable::pow(-2, 3) == -8);
  CHECK(portable::pow(10, -400) == 0);
  for (std::int64_t quarter = -5; quarter < 6; ++quarter) {
    const double turns = static_cast<double>(quarter) / 4;
    CHECK(portable::cos_of_turns(turns) == (quarter % 2 != 0 ? 0 : quarter % 4 == 0 ? 1 : -1));
    CHECK(portable::sin_of_turns(turns) == portable::cos_of_turns(turns - 0.25));
  }
}

TEST_CASE("portable functions have the same bits on every machine") {
  CHECK(hash_of(portable::log) == 284655559519320919U);
  CHECK(hash_of([](double x) { return portable::exp(20 * x - 10); }) == 6575855755328389950U);
  CHECK(hash_of(portable::cos_of_turns) == 10057557922234069882U);
  CHECK(hash_of(portable::sin_of_turns) == 6490901993352898443U);
  CHECK(hash_of([](double x) { return portable::pow(x, 0.9); }) == 2226558986477781721U);
}

}  // namespace halfstep
