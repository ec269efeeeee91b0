#include "selftest/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/device.h"

namespace halfstep::selftest {
namespace {

Format format_of(const vk::FloatControls& promises, int fraction_bits, int least_exponent) {
  return {fraction_bits, least_exponent, promises.preserves_denormals, promises.rounds_to_nearest_even,
          promises.preserves_signed_zero_inf_nan};
}

/// How far a result is from an exact one, in parts of what is allowed, and in units in the last place.
struct Distance {
  double share = 0;
  double ulps = 0;
  double allowed = 0;
};

Distance distance(const Operation& operation, const Format& format, double got, double exact, double a, double b) {
  if (std::isnan(exact)) return {format.preserves_nan_inf && !std::isnan(got) ? INFINITY : 0.0};
  const double allowed = operation.allowed(a, b);
  if (allowed == 0 && format.rounds_to_nearest) {
    const bool same = got == format.nearest(exact);
    const double ulps =
        std::isfinite(exact) && std::isfinite(got) ? std::abs(got - exact) / format.unit_in_last_place(exact) : 0.0;
    return {same ? std::min(1.0, ulps / 0.5) : INFINITY, ulps, 0.5};
  }
  const double slack = std::max(allowed, 1.0) * format.unit_in_last_place(exact) + operation.absolute;
  if (std::isinf(got) || std::isinf(exact)) {
    // Near the largest number either may be infinite.
    const double other = std::isinf(got) ? exact : got;
    const bool fine =
        got == exact || (std::signbit(got) == std::signbit(exact) && std::abs(other) + 2 * slack >= format.largest());
    return {fine ? 0.0 : (format.preserves_nan_inf || std::isfinite(exact) ? INFINITY : 0.0)};
  }
  if (std::isnan(got)) return {INFINITY};
  return {std::abs(got - exact) / slack, std::abs(got - exact) / format.unit_in_last_place(exact),
          slack / format.unit_in_last_place(exact)};
}

/// The smallest distance from the results that are right: of the numbers themselves, of a device that flushes denormals
/// anywhere, and of one that rounds a product before the sum.
Distance least_distance(const Operation& operation, const Format& format, double got, const std::array<double, 3>& in) {
  const double exact = operation.exact(in[0], in[1], in[2]);
  std::vector<double> right{exact};
  if (operation.rounds_twice) right.push_back(format.nearest(in[0] * in[1]) + in[2]);
  if (!format.preserves_denormals) {
    if (std::abs(got) < format.least_normal() && std::abs(exact) < format.least_normal()) return {};
    const std::array<double, 3> zeros{format.flushed(in[0]), format.flushed(in[1]), format.flushed(in[2])};
    const double of_zeros = operation.exact(zeros[0], zeros[1], zeros[2]);
    right.insert(right.end(), {format.flushed(exact), of_zeros, format.flushed(of_zeros)});
    if (operation.rounds_twice) right.push_back(format.flushed(format.nearest(zeros[0] * zeros[1])) + zeros[2]);
  }
  Distance least{INFINITY};
  for (const double one : right) {
    const Distance d = distance(operation, format, got, one, in[0], in[1]);
    if (d.share < least.share || &one == &right.front()) least = d;
  }
  return least;
}

void tell_denormals(CaseReport& report, const Operation& operation, std::size_t denormal, std::size_t flushed) {
  if (denormal == 0) return;
  report.facts.push_back(
      fmt::format("{}: {} of {} denormal results are stored as 0", operation.name, flushed, denormal));
}

/// How many numbers an operation takes: what it computes depends on no others.
std::size_t operands_of(const Operation& operation) {
  const double of_some = operation.exact(0.3, 0.7, 0.2);
  if (operation.exact(0.3, 0.7, 5) != of_some) return 3;
  return operation.exact(0.3, -1.9, 0.2) != of_some ? 2 : 1;
}

}  // namespace

float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t next_random(std::uint32_t& state) {
  state = state * 747796405U + 2891336453U;
  const std::uint32_t word = ((state >> ((state >> 28U) + 4U)) ^ state) * 277803737U;
  return (word >> 22U) ^ word;
}

double Format::unit_in_last_place(double value) const {
  const double magnitude = std::abs(value);
  if (!std::isfinite(value) || magnitude < least_normal()) return std::ldexp(1.0, least_exponent - fraction_bits);
  return std::ldexp(1.0, std::ilogb(magnitude) - fraction_bits);
}

double Format::least_normal() const {
  return std::ldexp(1.0, least_exponent);
}

double Format::largest() const {
  return std::ldexp(2.0 - std::ldexp(1.0, -fraction_bits), 1 - least_exponent);
}

double Format::flushed(double value) const {
  return std::abs(value) < least_normal() ? std::copysign(0.0, value) : value;
}

double Format::nearest(double value) const {
  const double unit = unit_in_last_place(value);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::abs(rounded) > largest() ? std::copysign(INFINITY, rounded) : rounded;
}

Format single_format() {
  return format_of(testing::context().capabilities().float32, 23, -126);
}

Format half_format() {
  return format_of(testing::context().capabilities().float16, 10, -14);
}

Words test_numbers(const Format& format, std::size_t count, std::uint32_t seed) {
  const double least = std::ldexp(1.0, format.least_exponent - format.fraction_bits);
  const double next = 1 + std::ldexp(1.0, -format.fraction_bits);
  std::vector<double> special{0,
                              1,
                              next,
                              2 - next,
                              1.5,
                              0.5,
                              2,
                              3,
                              10,
                              0.1,
                              88,
                              89,
                              100,
                              least,
                              3 * least,
                              format.least_normal() - least,
                              format.least_normal(),
                              65504,
                              65520,
                              2048,
                              2049,
                              0.333251953125,
                              format.largest(),
                              format.largest() / 2,
                              INFINITY,
                              NAN};
  Words words;
  std::uint32_t state = seed;
  while (words.size() < count) {
    const std::uint32_t random = next_random(state);
    float value = float_of(next_random(state));
    if (random % 8 == 0) {
      value = static_cast<float>(special[(random >> 8U) % special.size()]);
      if ((random & 16U) != 0) value = -value;
    } else if (random % 8 < 5) {  // of moderate magnitude
      value = std::ldexp(static_cast<float>(next_random(state)) * 0x1p-32F - 0.5F,
                         static_cast<int>(random >> 8U & 15U) - 6);
    }
    if (format.fraction_bits != 23 && std::isfinite(value)) value = static_cast<float>(format.nearest(value));
    words.push_back(bits_of(value));
  }
  return words;
}

void compare(CaseReport& report, const Operation& operation, const Format& format, const std::vector<Words>& inputs,
             const Words& results) {
  LargestError error{.of = operation.name};
  std::size_t wrong = 0;
  std::size_t denormal = 0;
  std::size_t flushed = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::array<double, 3> in{float_of(inputs[0][i]), float_of(inputs[1][i]), float_of(inputs[2][i])};
    if (operation.domain && !operation.domain(in[0], in[1])) continue;
    const double got = float_of(results[i]);
    const double exact = operation.exact(in[0], in[1], in[2]);
    const bool small = format.nearest(exact) != 0 && std::abs(exact) < format.least_normal();
    denormal += small ? 1U : 0U;
    flushed += small && got == 0 ? 1U : 0U;
    const Distance d = least_distance(operation, format, got, in);
    wrong += d.share > 1 ? 1U : 0U;
    if (d.share <= error.share) continue;
    error.share = d.share;
    error.ulps = d.ulps;
    error.allowed = d.allowed;
    error.at = fmt::format("{}({:.9g}) is {:.9g}, exactly {:.12g}", operation.name,
                           fmt::join(in.begin(), in.begin() + operands_of(operation), ", "),
                           std::isnan(got) ? NAN : got, exact);
  }
  tell_denormals(report, operation, denormal, flushed);
  if (wrong > 0) {
    add_fault(report, fmt::format("{} of {} results of {} are wrong, worst: {}", wrong, results.size(), operation.name,
                                  error.at));
    error.share = std::min(error.share, 1e9);
  }
  report.errors.push_back(std::move(error));
}

}  // namespace halfstep::selftest
