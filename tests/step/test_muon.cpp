#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "harness/values.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "reference/muon.h"
#include "reference/narrow.h"
#include "train/pulled_tensors.h"
#include "train/scaled_gradients.h"

namespace halfstep {
namespace {

using reference::Array;
using testing::PulledTensors;

/// Numbers that f16 and bf16 hold exactly, times a loss scale of a power of two too.
Array gradient(const Shape& shape, std::uint64_t seed) {
  Array result = testing::uniform(shape, seed);
  for (double& value : result.values) value = std::round(value * 64) / 64;
  return result;
}

std::vector<float> floats(const Array& array) {
  return {array.values.begin(), array.values.end()};
}

TrainerOptions options(const Muon& muon, Precision precision = Precision::float32()) {
  if (precision.loss_scale.kind != LossScale::Kind::none) precision.loss_scale = LossScale::fixed(16);
  TrainerOptions result;  // PulledTensors sets the loss
  result.optimizer = muon;
  result.precision = std::move(precision);
  return result;
}

/// The largest element of Muon's direction that a step can have: its singular values are below 1.21.
double largest_step(const Muon& muon, const Shape& shape) {
  const std::int64_t columns = shape.back();
  return static_cast<double>(muon.rate.rates[0]) * 0.2 * 1.21 *
         std::sqrt(static_cast<double>(std::max(columns, elements(shape) / columns)));
}

/// NaN where a number is.
double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

/// Compares steps of one parameter with the reference.
void check_muon(const Muon& muon, const Precision& precision, const Shape& shape, int steps, double accuracy) {
  CAPTURE(precision.name);
  CAPTURE(name(precision.moments));
  CAPTURE(to_string(shape));
  PulledTensors trained({{"w", shape, 2}}, options(muon, precision));
  reference::MuonWeights wanted(muon, Array(shape, 2), precision.moments);
  for (int step = 0; step < steps; ++step) {
    const Array pull = gradient(shape, 100 + static_cast<std::uint64_t>(step));
    trained.step({{"w", floats(pull)}});
    wanted.step(pull);
  }
  CHECK(trained.trainer().report().applied == steps);
  // A step rounds a weight of about 2 once, by less than the distance to the next number.
  const double rounding = is_narrow(precision.weights) ? 4 * reference::narrow(precision.parameters).unit() : 2e-6;
  const double tolerance = steps * (rounding + accuracy * largest_step(muon, shape));
  const std::vector<float> weights = trained.trainer().parameter("w");
  const std::vector<double> got(weights.begin(), weights.end());
  CHECK(largest_difference(got, wanted.weights().values) <= tolerance);
}

/// The direction of one step with this gradient: of a weight of 0, without decay.
Array direction(const Array& pull, Muon muon, const Precision& precision = Precision::float32()) {
  muon.rate = 1;
  muon.weight_decay = 0;
  PulledTensors trained({{"w", pull.shape}}, options(muon, precision));
  trained.step({{"w", floats(pull)}});
  Array result(pull.shape);
  const std::int64_t columns = pull.shape.back();
  const double factor = 0.2 * std::sqrt(static_cast<double>(std::max(columns, elements(pull.shape) / columns)));
  const std::vector<float> weights = trained.trainer().parameter("w");
  for (std::size_t i = 0; i < weights.size(); ++i) result.values[i] = -static_cast<double>(weights[i]) / factor;
  return result;
}

}  // namespace

TEST_CASE("Muon follows its formula in every precision") {
  const Muon kinds[] = {{.rate = 0.0625F, .momentum = 0.5F, .weight_decay = 0.25F},
                        {.rate = 0.0625F, .momentum = 0.75F, .nesterov = false, .weight_decay = 0},
                        {.rate = 0.0625F, .momentum = 0, .weight_decay = 0}};
  for (const Muon& muon : kinds) {
    CAPTURE(muon.momentum);
    for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(), Precision::bfloat16(),
                                Precision::bfloat16(DType::bf16)}) {
      for (const DType moments : std::set{DType::f32, precision.parameters}) {
        precision.moments = moments;
        // An element of the momentum that is rounded to another neighbour than in double changes the direction.
        const double accuracy = is_narrow(moments) ? 8 * reference::narrow(moments).unit() : 1e-4;
        for (const Shape& shape : {Shape{12, 5}, {3, 17}, {3, 3, 2, 5}})
          check_muon(muon, precision, shape, 4, accuracy);
      }
    }
  }
}

TEST_CASE("Muon updates matrices of any shape") {
  for (const Shape& shape : {Shape{1, 1}, {1, 6}, {7, 1}, {67, 131}, {131, 67}, {2, 3, 5, 7}, {300, 2}, {2, 300}}) {
    check_muon({.rate = 0.0625F}, Precision::float32(), shape, 2, 2e-3);
  }
}

TEST_CASE("Muon's direction has singular values near 1, whichever type its products have") {
  for (const Shape& shape : {Shape{40, 12}, {12, 40}, {3, 3, 4, 8}}) {
    CAPTURE(to_string(shape));
    const Array pull = gradient(shape, 7);
    const Array exact = reference::orthogonalised(pull);
    for (const auto& [products, accuracy] :
         {std::pair{DType::f32, 1e-5}, std::pair{DType::f16, 1e-2}, std::pair{DType::bf16, 8e-2}}) {
      CAPTURE(name(products));
      const Array got = direction(pull, {.products = products});
      CHECK(largest_difference(got.values, exact.values) <= accuracy);
      const std::vector<double> values = reference::singular_values(got);
      CHECK(values.front() >= 0.68 - 2 * accuracy);
      CHECK(values.back() <= 1.21 + 2 * accuracy);
    }
  }
}

TEST_CASE("Muon's products keep their sums in f32 whatever those of the model do") {
  const Array pull = gradient({40, 300}, 7);
  Precision narrow = Precision::mixed();
  narrow.partials.matmul = DType::f16;
  for (const DType products : {DType::f32, DType::f16}) {
    CHECK(direction(pull, {.products = products}, narrow).values ==
          direction(pull, {.products = products}, Precision::mixed()).values);
  }
}

TEST_CASE("Muon's direction does not depend on the gradient's magnitude, even where products are in f16") {
  const Array pull = gradient({20, 6}, 9);
  for (const auto& [products, accuracy] : {std::pair{DType::f32, 1e-3}, std::pair{DType::f16, 1e-2}}) {
    const Array once = direction(pull, {.products = products});
    for (const double factor : {0x1p-12, 0x1p20}) {
      Array other = pull;
      for (double& value : other.values) value *= factor;
      CHECK(largest_difference(direction(other, {.products = products}).values, once.values) <= accuracy);
    }
  }
}

TEST_CASE("Muon leaves a weight alone that never had a gradient") {
  for (const DType products : {DType::f32, DType::f16, DType::bf16}) {
    CHECK(direction(Array({6, 4}), {.products = products}).values == std::vector<double>(24, 0));
  }
}

TEST_CASE("an overflowed step leaves Muon's weights and momentum, and those of its other optimizer") {
  const TemporaryFolder folder;
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    for (const DType moments : std::set{DType::f32, precision.parameters}) {
      CAPTURE(precision.name);
      precision.moments = moments;
      PulledTensors trained({{"w", {5, 3}, 1}, {"v", {7}, 1}}, options({.rate = 0.125F}, precision));
      const std::vector<float> of_v(7, 0.5F);
      const std::vector<float> good = floats(gradient({5, 3}, 3));
      for (int i = 0; i < 3; ++i) trained.step({{"w", good}, {"v", of_v}});
      trained.trainer().save(folder.path() / "before");
      for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
        std::vector<float> broken = good;
        broken[14] = bad;
        trained.step({{"w", broken}, {"v", of_v}});
      }
      CHECK(trained.trainer().report().skipped == 2);
      trained.trainer().save(folder.path() / "after");
      const io::SafetensorsFile before(folder.path() / "before");
      const io::SafetensorsFile after(folder.path() / "after");
      for (const char* name : {"w", "w.momentum", "v", "v.first_moment", "v.second_moment", "halfstep.optimizers"}) {
        CAPTURE(name);
        REQUIRE(before.find(name) != nullptr);
        CHECK(std::ranges::equal(before.find(name)->data, after.find(name)->data));
      }
      trained.step({{"w", good}, {"v", of_v}});
      CHECK(trained.trainer().report().applied == 4);
    }
  }
}

TEST_CASE("a tensor whose own scale is too high keeps Muon's momentum, and the others are updated") {
  const Muon muon{.rate = 0.125F, .momentum = 0.5F};
  TrainerOptions made = options(muon, testing::scaled());
  made.precision = testing::scaled();
  const auto trained = [&](bool skips) {
    PulledTensors result({{"a", {5, 4}}, {"b", {5, 4}}}, made);
    const std::vector<float> good = floats(gradient({5, 4}, 5));
    // Far above the range of f16 with the scale that the first step has left.
    std::vector<float> large = good;
    for (float& value : large) value *= 0x1p14F;
    result.step({{"a", good}, {"b", good}});
    if (skips) result.step({{"a", large}, {"b", good}});
    const std::uint64_t skipped = result.trainer().report().tensor_updates_skipped;
    result.step({{"a", good}, {"b", good}});
    return std::tuple{result.trainer().parameter("a"), result.trainer().parameter("b"), skipped};
  };
  const auto [a, b, none] = trained(false);
  const auto [a_skipped, b_updated, one] = trained(true);
  CHECK(none == 0);
  CHECK(one == 1);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a_skipped[i] == doctest::Approx(a[i]).epsilon(1e-5));
  CHECK(b_updated != b);
}

TEST_CASE("Muon's states are one number for each weight of a matrix, and its other optimizer's where they are") {
  PulledTensors trained({{"first", {128, 4}}, {"v", {512}}, {"w", {64, 8}}},
                        options({.others_patterns = {"none", "fir*"}}));
  CHECK(trained.trainer().inspect().summary().optimizer_bytes == (512 + 2 * 512 + 2 * 512) * 4);
  const TemporaryFolder folder;
  trained.trainer().save(folder.path() / "checkpoint");
  const io::SafetensorsFile file(folder.path() / "checkpoint");
  CHECK(file.metadata().at("optimizer") == "muon, adamw");
  CHECK(file.find("w.momentum") != nullptr);
  CHECK(file.find("w.first_moment") == nullptr);
  for (const char* name : {"first", "v"}) {
    CHECK(file.find(std::string(name) + ".momentum") == nullptr);
    CHECK(file.find(std::string(name) + ".second_moment") != nullptr);
  }
}

TEST_CASE("clipped gradients reach Muon clipped, unscaled and over all tensors") {
  // With momentum, the direction depends on the ratio of a clipped gradient to one that was not.
  const Muon muon{.rate = 0.0625F, .momentum = 0.5F, .nesterov = false};
  const Shape shape{6, 3};
  const Array small = gradient(shape, 21);
  Array large = gradient(shape, 22);
  for (double& value : large.values) value *= 16;
  double square = 0;
  for (const double value : large.values) square += value * value;
  const double limit = 8;
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    CAPTURE(precision.name);
    TrainerOptions made = options(muon, precision);
    made.clip_norm = static_cast<float>(limit);
    PulledTensors trained({{"w", shape}}, made);
    reference::MuonWeights wanted(muon, Array(shape), DType::f32);
    trained.step({{"w", floats(large)}});
    trained.step({{"w", floats(small)}});
    Array clipped = large;
    for (double& value : clipped.values) value *= limit / std::sqrt(square);
    wanted.step(clipped);
    wanted.step(small);
    const std::vector<float> got = trained.trainer().parameter("w");
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(static_cast<double>(got[i]) == doctest::Approx(wanted.weights().values[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("Muon refuses hyperparameters that are out of range") {
  const auto compile = [](const Muon& muon) { PulledTensors({{"w", {2, 2}}}, options(muon)); };
  CHECK_NOTHROW(compile({}));
  CHECK_THROWS_WITH_AS(compile({.momentum = 1}), doctest::Contains("expected momentum to be in [0, 1), got 1"), Error);
  CHECK_THROWS_WITH_AS(compile({.products = DType::u32}), doctest::Contains("products of a floating type, got u32"),
                       Error);
  CHECK_THROWS_WITH_AS(compile({.others = AdamW{.beta1 = 1}}), doctest::Contains("expected beta1"), Error);
  CHECK_THROWS_WITH_AS(compile({.rate = -1.0F}), doctest::Contains("expected rate"), Error);
}

}  // namespace halfstep
