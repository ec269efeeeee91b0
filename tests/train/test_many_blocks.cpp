// Stages of a step that go over many blocks of gradients, each by several invocations and rounds of loops.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "train/pulled_tensors.h"
#include "train/scaled_gradients.h"

namespace halfstep {
namespace {

/// Random numbers of one of both signs and at least a quarter, which f16 has.
std::vector<float> random_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> magnitude(256, 1023);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    number = static_cast<float>(magnitude(random)) / 1024 * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return numbers;
}

double norm_of(const std::vector<float>& numbers) {
  double squares = 0;
  for (const float number : numbers) squares += static_cast<double>(number) * static_cast<double>(number);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("gradients of many blocks are clipped to a norm over all of them") {
  Precision mixed = Precision::mixed();
  mixed.loss_scale = LossScale::fixed(64);
  constexpr std::size_t count = 400'003;  // more blocks than invocations that sum their squares
  const std::vector<float> before = random_numbers(count, 1);
  const std::vector<float> gradients = random_numbers(count, 2);
  const double norm = norm_of(gradients);
  for (const Precision& precision : {Precision::float32(), mixed, testing::scaled()}) {
    CAPTURE(precision.name);
    for (const double limit : {norm / 2, norm * 2}) {
      TrainerOptions options{.loss = {}, .optimizer = Sgd{.rate = 1}, .clip_norm = static_cast<float>(limit)};
      options.precision = precision;
      testing::PulledTensors pulled({{"w", {count}, 0}}, std::move(options));
      pulled.trainer().set_parameter("w", before);
      pulled.step({{"w", gradients}});
      const double clip = std::min(limit / norm, 1.0);
      CHECK(static_cast<double>(pulled.trainer().report().gradient_norm) == doctest::Approx(norm).epsilon(1e-5));
      CHECK(static_cast<double>(pulled.trainer().report().clip) == doctest::Approx(clip).epsilon(1e-5));
      const std::vector<float> after = pulled.trainer().parameter("w");
      double largest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const double wanted = static_cast<double>(before[i]) - clip * static_cast<double>(gradients[i]);
        largest = std::max(largest, std::abs(static_cast<double>(after[i]) - wanted));
      }
      CHECK(largest < 1e-5);
    }
  }
}

TEST_CASE("the scale of a tensor of many blocks goes by the largest of all of them, and is undone in each") {
  constexpr std::size_t count = 70'001;
  TrainerOptions options{.loss = {}, .optimizer = Sgd{.rate = 1}};
  options.precision = testing::scaled();
  testing::PulledTensors pulled({{"w", {count}, 1}}, std::move(options));
  std::vector<float> gradients(count, 0x1p-6F);
  std::vector<float> wanted(count, 1 - 0x1p-6F);
  pulled.step({{"w", gradients}});  // after which the scale is 16 times as large, and too large for what follows
  CHECK(pulled.trainer().parameter("w") == wanted);
  gradients[69'000] = 60'000;
  pulled.step({{"w", gradients}});
  CHECK(pulled.trainer().report().tensor_updates_skipped == 1);
  CHECK(pulled.trainer().parameter("w") == wanted);
  pulled.step({{"w", gradients}});
  CHECK(pulled.trainer().report().tensor_updates_skipped == 1);
  for (std::size_t i = 0; i < count; ++i) wanted[i] -= gradients[i];
  CHECK(pulled.trainer().parameter("w") == wanted);
}

}  // namespace halfstep
