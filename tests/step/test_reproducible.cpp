#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/bits.h"
#include "harness/device.h"
#include "train/small_training.h"
#include "train/text_training.h"

namespace halfstep {
namespace {

using testing::run;

Precision reproducible() {
  Precision precision = Precision::float32();
  precision.reproducible = true;
  return precision;
}

/// What is not above 2^-126 is 0.
float flushed(float v) {
  return std::abs(v) <= 0x1p-126F ? std::copysign(0.0F, v) : v;
}

/// Bits of every kind that may be given: numbers of all exponents, those next to powers of two, and specials.
std::vector<float> numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::vector<float> result;
  const std::vector<std::uint32_t> specials{0,          0x80000000, 0x00800000, 0x00800001, 0x80800000, 0x7f7fffff,
                                            0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000};
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = random();
    if (i % 7 == 1) bits = specials[random() % specials.size()];
    if (i % 7 == 2) bits = (bits & 0xff800000) | (random() % 3);             // at and after a power of two
    if (i % 7 == 3) bits |= 0x007ffffc;                                      // before one
    if (i % 7 == 5) bits = (bits & 0x807fffff) | ((120 + bits % 16) << 23);  // from 2^-7 to 2^8
    if (i % 7 == 6) bits &= 0x81ffffff;  // up to 2^-124: subnormal numbers too, which count as 0
    result.push_back(std::bit_cast<float>(bits));
  }
  return result;
}

std::vector<float> computed(const std::function<Tensor(Tensor, Tensor)>& operation, std::span<const float> a,
                            std::span<const float> b) {
  Graph graph;
  const auto count = static_cast<std::int64_t>(a.size());
  const Tensor both = graph.input("both", {2, count});
  const auto row = [&](std::int64_t i) { return slice(both, {i, 0}, {i + 1, count}); };
  std::vector<float> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  return Predictor::compile(testing::device(), graph, operation(row(0), row(1)), reproducible())
      .run({{"both", std::span(std::as_const(values))}});
}

void expect_bits(const std::string& name, const std::function<Tensor(Tensor, Tensor)>& operation,
                 const std::function<float(float, float)>& reference) {
  const std::vector<float> a = numbers(40'000, 1);
  const std::vector<float> b = numbers(40'000, 2);
  const std::vector<float> got = computed(operation, a, b);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float wanted = flushed(reference(flushed(a[i]), flushed(b[i])));
    if (std::isnan(wanted) ? std::isnan(got[i])
                           : std::bit_cast<std::uint32_t>(wanted) == std::bit_cast<std::uint32_t>(got[i]))
      continue;
    if (wrong++ < 5) MESSAGE(name << " of " << a[i] << ", " << b[i] << " is " << got[i] << ", not " << wanted);
  }
  CHECK_MESSAGE(wrong == 0, name);
}

}  // namespace

TEST_CASE("reproducible quotients and roots are rounded to nearest even") {
  expect_bits(
      "div", [](Tensor a, Tensor b) { return div(a, b); }, [](float a, float b) { return a / b; });
  expect_bits(
      "sqrt", [](Tensor a, Tensor) { return sqrt(a); }, [](float a, float) { return a == 0 ? 0.0F : std::sqrt(a); });
  expect_bits(
      "mul", [](Tensor a, Tensor b) { return mul(a, b); }, [](float a, float b) { return a * b; });
  // A subnormal constant is 0, as subnormal numbers that are loaded are.
  expect_bits(
      "scale", [](Tensor a, Tensor) { return scale(a, 1e-39F); }, [](float a, float) { return a * 0.0F; });
  expect_bits(
      "offset", [](Tensor a, Tensor) { return offset(a, -1e-39F); }, [](float a, float) { return a + -0.0F; });
  expect_bits(
      "add", [](Tensor a, Tensor) { return offset(a, 1e-39F); }, [](float a, float) { return a + 0.0F; });
  // No arithmetic, but a device that flushes may take both for the same.
  expect_bits(
      "maximum", [](Tensor a, Tensor b) { return maximum(a, b); },
      [](float a, float b) { return std::isnan(a) || b < a ? a : b; });
  // Rounded twice, not once as a contraction would.
  expect_bits(
      "mul and add", [](Tensor a, Tensor b) { return add(mul(a, b), b); },
      [](float a, float b) {
        const volatile float product = flushed(a * b);
        return product + b;
      });
}

TEST_CASE("reproducible batch norms have the moments of their rows, be they one quad of channels or several") {
  // Mesa 26's lavapipe with vectors of 128 bits left out the squares of the first, loaded in pairs.
  constexpr std::int64_t rows = 48;
  for (const std::int64_t channels : {1, 3, 4, 5, 8, 9}) {
    CAPTURE(channels);
    Graph graph;
    const Tensor x = graph.root().parameter("x", {rows, channels}, constant(0));
    const auto state = [&](const char* name) { return graph.root().state(name, {channels}, constant(0)); };
    const auto weight = [&](const char* name) { return graph.root().parameter(name, {channels}, constant(1)); };
    const Tensor y =
        batch_norm(x, weight("weight"), weight("bias"), {state("mean"), state("variance")}, {.momentum = 1});
    Trainer trainer = Trainer::compile(testing::device(), graph,
                                       {.loss = sum(y), .optimizer = Sgd{.rate = 0}, .precision = reproducible()});
    std::vector<float> values;
    for (std::int64_t i = 0; i < rows * channels; ++i) values.push_back(static_cast<float>(i * 7919 % 13));
    trainer.set_parameter("x", values);
    run(trainer, 1);
    for (std::int64_t c = 0; c < channels; ++c) {
      double total = 0;
      double squares = 0;
      for (std::int64_t i = c; i < rows * channels; i += channels) {
        total += static_cast<double>(values[static_cast<std::size_t>(i)]);
        squares += std::pow(static_cast<double>(values[static_cast<std::size_t>(i)]), 2);
      }
      const double variance = (squares - total * total / rows) / (rows - 1);
      CHECK(static_cast<double>(trainer.parameter("mean")[static_cast<std::size_t>(c)]) ==
            doctest::Approx(total / rows).epsilon(1e-5));
      CHECK(static_cast<double>(trainer.parameter("variance")[static_cast<std::size_t>(c)]) ==
            doctest::Approx(variance).epsilon(1e-5));
    }
  }
}

TEST_CASE("reproducible trainings end with the same bits on every driver") {
  // Whatever is tested here must give these, and no driver's own. They change with the kernels, the order of sums and
  // the initial weights, and are then taken from a run of each driver.
  const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> known{
      {"float32", {16876751478990000914U, 477581263128704154U}},
      {"float16", {10707540148356957719U, 9368146156069430647U}},
      {"bfloat16_weights", {8985657375555700247U, 3925128135651632503U}}};
  const Dataset images = testing::toy_dataset(64, {6, 5, 1}, 3);
  const Dataset texts = testing::texts(32);
  for (const auto& [name, hashes] : known) {
    CAPTURE(name);
    Precision precision = Precision::level(name);
    precision.reproducible = true;
    Trainer images_trainer = testing::toy_trainer(images, {.precision = precision, .dropout = 0.25F});
    run(images_trainer, 12);
    CHECK(testing::hash_of_bits(testing::toy_weights(images_trainer)) == hashes.first);
    Trainer text_trainer =
        testing::text_trainer(texts, {.dropout = 0.1F, .precision = precision, .optimizer = AdamW{.rate = 1e-3F}});
    run(text_trainer, 12);
    CHECK(testing::hash_of_bits(testing::text_weights(text_trainer)) == hashes.second);
  }
}

}  // namespace halfstep
