#include "base/portable_math.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace halfstep::portable {
namespace {

/// ln 2 in two parts. The first has 33 bits, so that its product with an exponent of double is exact.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;

/// 1/first!, sign/(first + step)!, 1/(first + 2 step)! and so on.
template <std::size_t terms>
constexpr std::array<double, terms> inverse_factorials(int first, int step, int sign) {
  std::array<double, terms> result{};
  double factorial = 1;
  int n = 1;
  int signs = 1;
  for (std::size_t i = 0; i < terms; ++i) {
    for (; n <= first + static_cast<int>(i) * step; ++n) factorial *= n;
    result[i] = signs / factorial;
    signs *= sign;
  }
  return result;
}

/// 1, 1/3, 1/5 and so on.
template <std::size_t terms>
constexpr std::array<double, terms> inverse_odd_numbers() {
  std::array<double, terms> result{};
  for (std::size_t i = 0; i < terms; ++i) result[i] = 1.0 / static_cast<double>(2 * i + 1);
  return result;
}

template <std::size_t terms>
double polynomial(const std::array<double, terms>& coefficients, double x) {
  double sum = coefficients[terms - 1];
  for (std::size_t i = terms - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// Taylor's series, as far as they count for the arguments that are left: 0.347 of exp, an eighth of a turn, 0.1716^2.
constexpr auto exp_terms = inverse_factorials<14>(0, 1, 1);
constexpr auto cos_terms = inverse_factorials<10>(0, 2, -1);
constexpr auto sin_terms = inverse_factorials<9>(1, 2, -1);
constexpr auto log_terms = inverse_odd_numbers<12>();

double whole_power(double base, std::int64_t exponent) {
  double result = 1;
  for (std::uint64_t left = static_cast<std::uint64_t>(exponent < 0 ? -exponent : exponent); left != 0; left >>= 1) {
    if (left % 2 == 1) result *= base;
    base *= base;
  }
  return exponent < 0 ? 1 / result : result;
}

/// The cosine of 2 pi turns, `quarters` quarters of a turn later.
double circle(double turns, std::int64_t quarters) {
  const double nearest = std::floor(4 * turns + 0.5);
  const double angle = 2 * std::numbers::pi * (turns - nearest / 4);
  const double square = angle * angle;
  switch ((static_cast<std::int64_t>(nearest) + quarters) & 3) {
    case 0:
      return polynomial(cos_terms, square);
    case 1:
      return -angle * polynomial(sin_terms, square);
    case 2:
      return -polynomial(cos_terms, square);
    default:
      return angle * polynomial(sin_terms, square);
  }
}

}  // namespace

// log(m 2^e) = e log 2 + 2 artanh((m - 1) / (m + 1)), with m from sqrt(1/2) to sqrt(2).
double log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  return exponent * ln2_high + (2 * s * polynomial(log_terms, s * s) + exponent * ln2_low);
}

// exp(k log 2 + rest) = 2^k exp(rest)
double exp(double x) {
  if (!(x > -800)) return x != x ? x : 0;
  if (x > 800) return HUGE_VAL;
  const double k = std::floor(x / std::numbers::ln2 + 0.5);
  const double rest = (x - k * ln2_high) - k * ln2_low;
  return std::ldexp(polynomial(exp_terms, rest), static_cast<int>(k));
}

double pow(double base, double exponent) {
  constexpr double most = 0x1p40;
  if (exponent == std::floor(exponent) && std::abs(exponent) <= most) {
    return whole_power(base, static_cast<std::int64_t>(exponent));
  }
  if (base == 0) return exponent > 0 ? 0 : HUGE_VAL;
  return exp(exponent * log(base));
}

double cos_of_turns(double turns) {
  return circle(turns, 0);
}

double sin_of_turns(double turns) {
  return circle(turns, 3);
}

}  // namespace halfstep::portable
