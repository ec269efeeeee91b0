#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/philox.h"
#include "harness/device.h"
#include "plan/program.h"
#include "reference/narrow.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

/// A type that results are rounded to, and what the tests expect of it.
struct Rounded {
  DType dtype;
  const reference::Narrow& bits = reference::narrow(dtype);
  int highest = std::ilogb(bits.end());      ///< exponent of the largest numbers
  int lowest = std::ilogb(bits.smallest());  ///< the smallest number is 2 to this

  float number(std::uint32_t pattern) const {
    return static_cast<float>(bits.value(static_cast<std::uint16_t>(pattern)));
  }
  bool is_nan(std::uint16_t pattern) const { return (pattern & 0x7FFF) > bits.infinity(); }
};

const Rounded types[] = {{DType::f16}, {DType::bf16}};

/// The key of the noise, besides the tensor.
struct Noise {
  std::uint64_t seed;
  std::uint64_t step;
};

/// The bits a cast of `values` gives on the device, rounded to nearest, or at random where there is a key.
std::vector<std::uint16_t> cast_bits(const Rounded& type, const std::vector<float>& values,
                                     const Noise* noise = nullptr, Overflow overflow = Overflow::infinity) {
  Graph graph;
  const Tensor x = graph.input("x", {static_cast<std::int64_t>(values.size())});
  const Tensor y = cast(x, type.dtype);
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

/// Every number that the type has, what lies half-way between two of them, and what lies next to all of those in f32.
std::vector<float> around_every_number(const Rounded& type) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < type.bits.infinity(); ++bits) {
    const double number = type.bits.value(static_cast<std::uint16_t>(bits));
    const double half_way = number + std::ldexp(1, type.bits.last_place(std::max(number, 0x1p-149)) - 1);
    for (const double center : {number, half_way}) {
      const auto at = static_cast<float>(center);
      for (const float value :
           {std::nextafter(at, 0.0F), at, std::nextafter(at, std::numeric_limits<float>::infinity())}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  return values;
}

/// Random bits: all magnitudes, infinities and NaNs.
std::vector<float> any_bits(std::size_t count) {
  std::mt19937 random(31);
  std::vector<float> values(count);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  return values;
}

/// All magnitudes that the type has, evenly by exponent, and some beyond.
std::vector<float> any_magnitude(const Rounded& type, std::size_t count) {
  std::mt19937 random(32);
  std::vector<float> values(count);
  for (float& value : values) {
    const int lowest = type.lowest - 7;
    const int exponent = static_cast<int>(random() % static_cast<std::uint32_t>(type.highest + 2 - lowest)) + lowest;
    value = std::ldexp(static_cast<float>(random()) * 0x1p-32F, exponent) * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return values;
}

/// Counts the bits that are not `want(i)`; any NaN is as good as another.
template <typename Want>
void check_bits(const Rounded& type, const std::vector<float>& values, const std::vector<std::uint16_t>& bits,
                const Want& want) {
  CAPTURE(name(type.dtype));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t wanted = want(i);
    const bool right = type.is_nan(wanted) ? type.is_nan(bits[i]) : bits[i] == wanted;
    if (!right && wrong++ == 0) MESSAGE("first wrong: " << values[i] << " became " << bits[i] << ", not " << wanted);
  }
  CHECK(wrong == 0);
}

void check_nearest(const Rounded& type, const std::vector<float>& values) {
  check_bits(type, values, cast_bits(type, values), [&](std::size_t i) { return type.bits.bits(values[i]); });
}

/// Casts `count` copies of a value with different noise and compares their mean with it.
void check_unbiased(const Rounded& type, float value) {
  constexpr std::size_t count = 1 << 16;
  const Noise key{77, 5};
  const std::vector<std::uint16_t> bits = cast_bits(type, std::vector<float>(count, value), &key);
  double total = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const std::uint16_t b : bits) {
    const double rounded = type.bits.value(b);
    total += rounded;
    low = std::min(low, rounded);
    high = std::max(high, rounded);
  }
  CAPTURE(value);
  CAPTURE(name(type.dtype));
  REQUIRE(high > low);
  const double unit = high - low;
  const double share = (static_cast<double>(value) - low) / unit;
  CHECK(share > 0);
  CHECK(share < 1);
  const double sigma = unit * std::sqrt(share * (1 - share) / count);
  CHECK(std::abs(total / count - static_cast<double>(value)) < 4 * sigma);
}

}  // namespace

TEST_CASE("rounding to nearest: every number, every tie, every neighbour") {
  for (const Rounded& type : types) check_nearest(type, around_every_number(type));
}

TEST_CASE("rounding to nearest: any 32 bits") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Rounded& type : types) {
    check_nearest(type, any_bits(200000));
    check_nearest(type, any_magnitude(type, 200000));
    const auto end = static_cast<float>(type.bits.end());
    const float smallest = std::ldexp(1.0F, type.lowest - 1);
    check_nearest(type,
                  {0.0F, -0.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), std::nextafter(end, 0.0F),
                   end, -end, 3e38F, 1e-45F, -1e-45F, smallest, std::nextafter(smallest, 1.0F)});
  }
}

TEST_CASE("every pattern of 16 bits widens to the number it stands for") {
  for (const Rounded& type : types) {
    CAPTURE(name(type.dtype));
    Graph graph;
    const Tensor x = graph.input("x", {65536}, type.dtype);
    const Tensor y = cast(x, DType::f32);
    std::vector<float> numbers(65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) numbers[bits] = type.number(bits);
    step::Execution execution(testing::context(), graph.ir(), {y.id()});
    execution.set(x.id(), numbers);
    execution.run();
    const std::vector<float> wide = execution.floats(y.id());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const bool same = std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(numbers[i]);
      const bool right = std::isnan(numbers[i]) ? std::isnan(wide[i]) : same;
      if (!right && wrong++ == 0)
        MESSAGE("first wrong: pattern " << i << " became " << wide[i] << ", not " << numbers[i]);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("stochastic rounding draws Philox's numbers for the element, whatever the device") {
  const Noise key{0x123456789ABCDEF0U, 0x1FFFFFFFFU};
  const std::uint32_t stream = plan::noise_stream("cast:0");
  for (const Rounded& type : types) {
    std::vector<float> values = any_magnitude(type, 100000);
    const std::vector<float> others = any_bits(20001);
    values.insert(values.end(), others.begin(), others.end());
    check_bits(type, values, cast_bits(type, values, &key), [&](std::size_t i) {
      const auto noise =
          process::philox4x32({static_cast<std::uint32_t>(i / 4), stream, static_cast<std::uint32_t>(key.step), 1U},
                              {0x9ABCDEF0U, 0x12345678U});
      return type.bits.stochastic_bits(values[i], noise[i % 4]);
    });
  }
}

TEST_CASE("stochastic rounding is unbiased for normals, subnormals and both signs") {
  for (const Rounded& type : types) {
    std::vector<float> values{1.0001F, 3.14159F, 0.1F, 60001.3F};
    const float subnormal = std::ldexp(1.0F, type.lowest);
    if (type.dtype == DType::f16) values.insert(values.end(), {6.2e-5F, 6.1e-5F, 3.3e-6F, 2.2e-7F, 1e-8F, 3.1e-9F});
    for (const float units : {100.3F, 3.7F, 0.17F}) values.push_back(units * subnormal);
    for (const float value : values) {
      check_unbiased(type, value);
      check_unbiased(type, -value);
    }
  }
}

TEST_CASE(
    "stochastic rounding keeps what a type has, and gives no infinity below half a unit beyond its largest number") {
  const Noise key{1, 2};
  for (const Rounded& type : types) {
    CAPTURE(name(type.dtype));
    const std::uint16_t infinity = type.bits.infinity();
    std::vector<float> numbers;
    for (std::uint32_t bits = 0; bits < infinity; ++bits) numbers.push_back(type.number(bits));
    const std::vector<std::uint16_t> kept = cast_bits(type, numbers, &key);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) changed += kept[i] == i ? 0U : 1U;
    CHECK(changed == 0);
    const float largest = numbers.back();
    const auto end = static_cast<float>(type.bits.end());
    for (const float value : {largest, largest + (end - largest) / 3, std::nextafter(end, 0.0F)}) {
      for (const std::uint16_t bits : cast_bits(type, std::vector<float>(4096, value), &key)) REQUIRE(bits < infinity);
    }
    CHECK(cast_bits(type, {end, -end}, &key) ==
          std::vector<std::uint16_t>{infinity, static_cast<std::uint16_t>(infinity | 0x8000)});
  }
}

TEST_CASE("saturation stores the largest number for all that is larger, and keeps NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Noise key{1, 2};
  for (const Rounded& type : types) {
    CAPTURE(name(type.dtype));
    const auto most = static_cast<std::uint16_t>(type.bits.infinity() - 1);
    const auto least = static_cast<std::uint16_t>(most | 0x8000);
    const auto end = static_cast<float>(type.bits.end());
    const float below = std::nextafter(end, 0.0F);
    const std::vector<float> values{type.number(most), below, end, -end, end * 1.001F, infinity, -infinity, 1.0F};
    const std::vector<std::uint16_t> want{most, most, most, least, most, most, least, type.bits.bits(1)};
    CHECK(cast_bits(type, values, nullptr, Overflow::saturate) == want);
    CHECK(cast_bits(type, values, &key, Overflow::saturate) == want);
    CHECK(cast_bits(type, values)[2] == type.bits.infinity());
    CHECK(type.is_nan(cast_bits(type, {std::numeric_limits<float>::quiet_NaN()}, nullptr, Overflow::saturate)[0]));
  }
}

TEST_CASE("a cast from one narrow type to another rounds the number itself") {
  std::vector<float> numbers;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits)
    numbers.push_back(static_cast<float>(reference::half.value(static_cast<std::uint16_t>(bits))));
  for (const auto& [from, to] : {std::pair{DType::f16, DType::bf16}, {DType::bf16, DType::f16}}) {
    CAPTURE(name(from));
    Graph graph;
    const Tensor x = graph.input("x", {static_cast<std::int64_t>(numbers.size())}, from);
    const Tensor y = cast(x, to);
    step::Execution execution(testing::context(), graph.ir(), {y.id()});
    execution.set(x.id(), numbers);
    execution.run();
    const std::vector<float> got = execution.floats(y.id());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double read = reference::narrow(from).rounded(static_cast<double>(numbers[i]));
      const double wanted = reference::narrow(to).rounded(read);
      if (static_cast<double>(got[i]) != wanted && wrong++ == 0)
        MESSAGE("first wrong: " << read << " became " << got[i] << ", not " << wanted);
    }
    CHECK(wrong == 0);
  }
}
