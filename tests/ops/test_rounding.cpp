#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/philox.h"
#include "harness/device.h"
#include "plan/program.h"
#include "reference/half.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

float f32_of(std::uint16_t half) {
  return static_cast<float>(reference::half_value(half));
}

/// What random numbers are drawn for, beside the tensor.
struct Noise {
  std::uint64_t seed;
  std::uint64_t step;
};

/// The bits a cast of `values` to f16 gives on the device, rounded to nearest, or at random where there is a key.
std::vector<std::uint16_t> cast_bits(const std::vector<float>& values, const Noise* noise = nullptr,
                                     Overflow overflow = Overflow::infinity) {
  Graph graph;
  const Tensor x = graph.input("x", {static_cast<std::int64_t>(values.size())});
  const Tensor y = cast(x, DType::f16);
  step::ExecutionOptions options;
  options.overflow = overflow;
  if (noise != nullptr) {
    options.rounding = Rounding::stochastic;
    options.seed = noise->seed;
    options.step = noise->step;
  }
  step::Execution execution(testing::context(), graph.ir(), {y.id()}, options);
  execution.set(x.id(), values);
  execution.run();
  const std::vector<std::byte> memory = execution.memory(y.id());
  std::vector<std::uint16_t> bits(values.size());
  std::memcpy(bits.data(), memory.data(), bits.size() * sizeof(bits[0]));
  return bits;
}

bool is_nan(std::uint16_t bits) {
  return (bits & 0x7FFF) > 0x7C00;
}

/// Every number that f16 has, what lies half-way between two of them, and what lies next to all of those in f32.
std::vector<float> around_every_half() {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float half = f32_of(static_cast<std::uint16_t>(bits));
    const float above = bits + 1 == 0x7C00 ? 65536.0F : f32_of(static_cast<std::uint16_t>(bits + 1));
    for (const float center : {half, (half + above) / 2}) {
      for (const float value : {std::nextafter(center, 0.0F), center, std::nextafter(center, 1e9F)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  return values;
}

/// Any bits at all: all magnitudes, infinities and NaNs among them.
std::vector<float> any_bits(std::size_t count) {
  std::mt19937 random(31);
  std::vector<float> values(count);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  return values;
}

/// All magnitudes that f16 has, evenly by exponent.
std::vector<float> any_half_magnitude(std::size_t count) {
  std::mt19937 random(32);
  std::vector<float> values(count);
  for (float& value : values) {
    const int exponent = static_cast<int>(random() % 48) - 31;
    value = std::ldexp(static_cast<float>(random()) * 0x1p-32F, exponent) * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return values;
}

void check_nearest(const std::vector<float>& values) {
  const std::vector<std::uint16_t> bits = cast_bits(values);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t want = reference::half_bits(values[i]);
    // A NaN stays one; which one is the device's choice.
    const bool right = is_nan(want) ? is_nan(bits[i]) : bits[i] == want;
    if (!right && wrong++ == 0) MESSAGE("first wrong: " << values[i] << " became " << bits[i] << ", not " << want);
  }
  CHECK(wrong == 0);
}

/// Casts `count` copies of a value with different noise and compares their mean with it.
void check_unbiased(float value) {
  constexpr std::size_t count = 1 << 16;
  const Noise key{77, 5};
  const std::vector<std::uint16_t> bits = cast_bits(std::vector<float>(count, value), &key);
  double total = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const std::uint16_t b : bits) {
    const double rounded = reference::half_value(b);
    total += rounded;
    low = std::min(low, rounded);
    high = std::max(high, rounded);
  }
  CAPTURE(value);
  REQUIRE(high > low);
  const double unit = high - low;
  const double share = (static_cast<double>(value) - low) / unit;
  CHECK(share > 0);
  CHECK(share < 1);
  const double sigma = unit * std::sqrt(share * (1 - share) / count);
  CHECK(std::abs(total / count - static_cast<double>(value)) < 4 * sigma);
}

}  // namespace

TEST_CASE("rounding to nearest: every half, every tie, every neighbour") {
  check_nearest(around_every_half());
}

TEST_CASE("rounding to nearest: any 32 bits") {
  check_nearest(any_bits(200000));
  check_nearest(any_half_magnitude(200000));
  const float infinity = std::numeric_limits<float>::infinity();
  check_nearest({0.0F, -0.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 65519.996F, 65520.0F,
                 -65520.0F, 3e38F, 1e-45F, -1e-45F, 0x1p-25F, std::nextafter(0x1p-25F, 1.0F)});
}

TEST_CASE("every half widens to the number it stands for") {
  Graph graph;
  const Tensor x = graph.input("x", {65536}, DType::f16);
  const Tensor y = cast(x, DType::f32);
  std::vector<float> halves(65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) halves[bits] = f32_of(static_cast<std::uint16_t>(bits));
  step::Execution execution(testing::context(), graph.ir(), {y.id()});
  execution.set(x.id(), halves);
  execution.run();
  const std::vector<float> wide = execution.floats(y.id());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(halves[i]);
    const bool right = std::isnan(halves[i]) ? std::isnan(wide[i]) : same;
    if (!right && wrong++ == 0) MESSAGE("first wrong: half " << i << " became " << wide[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("stochastic rounding draws Philox's numbers for the element, whatever the device") {
  const Noise key{0x123456789ABCDEF0U, 0x1FFFFFFFFU};
  std::vector<float> values = any_half_magnitude(100000);
  const std::vector<float> others = any_bits(20001);
  values.insert(values.end(), others.begin(), others.end());
  const std::vector<std::uint16_t> bits = cast_bits(values, &key);
  const std::uint32_t stream = plan::noise_stream("cast:0");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto noise =
        process::philox4x32({static_cast<std::uint32_t>(i / 4), stream, static_cast<std::uint32_t>(key.step), 1U},
                            {0x9ABCDEF0U, 0x12345678U});
    const std::uint16_t want = reference::stochastic_half_bits(values[i], noise[i % 4]);
    const bool right = is_nan(want) ? is_nan(bits[i]) : bits[i] == want;
    if (!right && wrong++ == 0) MESSAGE("first wrong: " << values[i] << " became " << bits[i] << ", not " << want);
  }
  CHECK(wrong == 0);
}

TEST_CASE("stochastic rounding is unbiased for normals, subnormals and both signs") {
  for (const float value : {1.0001F, 3.14159F, 0.1F, 60001.3F, 6.2e-5F, 6.1e-5F, 3.3e-6F, 2.2e-7F, 1e-8F, 3.1e-9F}) {
    check_unbiased(value);
    check_unbiased(-value);
  }
}

TEST_CASE("stochastic rounding keeps what f16 has, and gives no infinity below 65520") {
  const Noise key{1, 2};
  std::vector<float> halves;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) halves.push_back(f32_of(static_cast<std::uint16_t>(bits)));
  const std::vector<std::uint16_t> kept = cast_bits(halves, &key);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) changed += kept[i] == i ? 0U : 1U;
  CHECK(changed == 0);
  for (const float value : {65504.0F, 65510.0F, 65519.99F}) {
    for (const std::uint16_t bits : cast_bits(std::vector<float>(4096, value), &key)) REQUIRE(bits <= 0x7BFF);
  }
  CHECK(cast_bits({65520.0F, -70000.0F}, &key) == std::vector<std::uint16_t>{0x7C00, 0xFC00});
}

TEST_CASE("saturation stores 65504 for all that is larger, and keeps NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{65504.0F, 65519.0F, 65520.0F, -65520.0F, 1e9F, infinity, -infinity, 1.0F};
  const std::vector<std::uint16_t> want{0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF, 0x7BFF, 0x7BFF, 0xFBFF, 0x3C00};
  const Noise key{1, 2};
  CHECK(cast_bits(values, nullptr, Overflow::saturate) == want);
  CHECK(cast_bits(values, &key, Overflow::saturate) == want);
  CHECK(cast_bits(values)[2] == 0x7C00);
  CHECK(is_nan(cast_bits({std::numeric_limits<float>::quiet_NaN()}, nullptr, Overflow::saturate)[0]));
}
