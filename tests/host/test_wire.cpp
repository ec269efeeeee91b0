// How numbers travel between ranks, and how they are added.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "dist/wire.h"

using namespace halfstep;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> sent(const std::vector<float>& values, const WireFormat& format, std::uint32_t stream = 0,
                            std::uint64_t place = 0) {
  std::vector<std::byte> bytes(dist::wire_bytes(format.type, values.size()));
  dist::encode(values, format, stream, place, bytes);
  return bytes;
}

std::vector<float> travelled(const std::vector<float>& values, const WireFormat& format, std::uint32_t stream = 0) {
  std::vector<float> result(values.size());
  dist::decode(sent(values, format, stream), format.type, result);
  return result;
}

/// Numbers of both signs whose exponents are spread over `exponents` below that of `largest`.
std::vector<float> spread(std::size_t count, float largest, int exponents, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> unit(-1, 1);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(std::ldexp(unit(random) * largest, -static_cast<int>(i) % exponents));
  }
  values[count / 2] = largest;
  return values;
}

}  // namespace

TEST_CASE("f16 and bf16 take half the bytes of f32, f16 a byte more for each block") {
  CHECK(dist::wire_bytes(DType::f32, 300) == 1200);
  CHECK(dist::wire_bytes(DType::bf16, 300) == 600);
  CHECK(dist::wire_bytes(DType::f16, 256) == 514);
  CHECK(dist::wire_bytes(DType::f16, 257) == 517);
  CHECK(dist::wire_bytes(DType::f16, 0) == 0);
}

TEST_CASE("f32 travels as it is") {
  const std::vector<float> values{0, -0.0F, 1e-42F, 3e38F, infinity, -infinity};
  CHECK(travelled(values, {}) == values);
  CHECK(std::signbit(travelled(values, {})[1]));
  CHECK(std::isnan(travelled({std::nanf("")}, {})[0]));
}

TEST_CASE("blocks of f16 neither overflow nor underflow, whatever their size") {
  for (const float largest : {std::numeric_limits<float>::max(), 3e38F, 65504.0F, 1.0F, 1e-6F, 1e-20F, 1e-37F}) {
    CAPTURE(largest);
    const std::vector<float> values = spread(1000, largest, 24);
    const std::vector<float> got = travelled(values, {DType::f16});
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Half of the last of 11 bits; below 2^-29 of the largest, half of the smallest step.
      const float allowed = std::max(std::ldexp(std::abs(values[i]), -11), std::ldexp(largest, -38));
      CHECK(std::abs(got[i] - values[i]) <= allowed);
    }
  }
}

TEST_CASE("each block of f16 has a power of two of its own") {
  std::vector<float> values(3 * dist::block, 1e-30F);
  std::fill_n(values.begin(), dist::block, 1e30F);
  const std::vector<float> got = travelled(values, {DType::f16});
  CHECK(got[0] == doctest::Approx(1e30).epsilon(1e-3));
  CHECK(got[dist::block - 1] == got[0]);
  CHECK(got[dist::block] == doctest::Approx(1e-30).epsilon(1e-3));
}

TEST_CASE("f32's subnormal numbers travel in f16, scaled") {
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(travelled({tiny, 3 * tiny, -1000 * tiny}, {DType::f16}) == std::vector<float>{tiny, 3 * tiny, -1000 * tiny});
}

TEST_CASE("what is not finite arrives so, and harms nothing beside it") {
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      const std::vector<float> got = travelled({1, infinity, 0.5F, -infinity, std::nanf(""), 2}, {type, rounding, 7});
      CHECK(got[0] == 1);
      CHECK(got[1] == infinity);
      CHECK(got[2] == 0.5F);
      CHECK(got[3] == -infinity);
      CHECK(std::isnan(got[4]));
      CHECK(got[5] == 2);
    }
  }
}

TEST_CASE("stochastic rounding is to one of both neighbours, and right on average") {
  for (const DType type : {DType::f16, DType::bf16}) {
    const float step = type == DType::f16 ? 0x1p-10F : 0x1p-7F;
    const std::vector<float> values(1 << 14, 1 + 0.3F * step);
    const std::vector<float> got = travelled(values, {type, Rounding::stochastic, 11});
    std::size_t above = 0;
    for (const float value : got) {
      CHECK((value == 1 || value == 1 + step));
      above += value > 1 ? 1 : 0;
    }
    // Of 16384 draws with a probability of 0.3, whose std is 59.
    CHECK(std::abs(static_cast<double>(above) - 0.3 * 16384) < 5 * 59);
  }
}

TEST_CASE("stochastic rounding draws by seed, stream and place, not by part") {
  const std::vector<float> values = spread(2 * dist::block, 1, 4);
  const WireFormat format{DType::bf16, Rounding::stochastic, 3};
  const std::vector<std::byte> whole = sent(values, format);
  CHECK(whole == sent(values, format));
  CHECK(whole != sent(values, {DType::bf16, Rounding::stochastic, 4}));
  CHECK(whole != sent(values, format, 1));
  const std::vector<float> second(values.begin() + dist::block, values.end());
  const std::vector<std::byte> part = sent(second, format, 0, dist::block);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 2 * dist::block));
}

TEST_CASE("sums that are subnormal become 0, and what is not finite stays") {
  std::vector<float> sums{1e-38F, 1, infinity, infinity, std::nanf(""), 3e38F};
  dist::add(std::vector<float>{-0.5e-38F, 2, 1, -infinity, 1, 3e38F}, sums);
  CHECK(sums[0] == 0);
  CHECK(sums[1] == 3);
  CHECK(sums[2] == infinity);
  CHECK(std::isnan(sums[3]));
  CHECK(std::isnan(sums[4]));
  CHECK(sums[5] == infinity);
}

TEST_CASE("MPI can count the bytes of all ranks' terms of a part, whoever owns it") {
  const auto bytes_of_terms = [](const std::vector<std::size_t>& ends, std::size_t count) {
    std::size_t largest = 0;
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      largest = std::max(largest, std::min(end - first, count));
      first = end;
    }
    return ends.size() * dist::wire_bytes(DType::f32, largest);
  };
  for (const std::size_t ranks : {1U, 2U, 4U, 5U, 7U, 64U, 1000U, 10000U}) {
    for (const std::size_t values : {std::size_t{1} << 20, dist::most_values, std::size_t{622'329'856}}) {
      CAPTURE(ranks);
      CAPTURE(values);
      const std::vector<std::size_t> of_first(ranks, values);
      std::vector<std::size_t> equal;
      for (std::size_t r = 1; r <= ranks; ++r) equal.push_back(values * r / ranks);
      for (const auto& ends : {of_first, equal}) {
        const std::size_t most = dist::most_values_of(ends);
        CHECK(most > 0);
        CHECK(most % dist::block == 0);
        CHECK(most <= dist::most_values);
        CHECK(bytes_of_terms(ends, most) <= std::size_t{std::numeric_limits<int>::max()});
      }
      // No more operations than are needed.
      if (values <= dist::most_values) CHECK(dist::most_values_of(equal) == dist::most_values);
    }
  }
}
