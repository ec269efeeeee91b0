// Every switch of a precision policy has the effect it promises: a switch without effect would fail.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/philox.h"
#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "plan/host_tensor.h"
#include "reference/narrow.h"
#include "step/execution.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::plain;
using testing::Pull;

/// The weights of a small network after a few steps.
std::vector<float> toy(const Precision& precision) {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 4, 5);
  Trainer trainer = testing::toy_trainer(set, {.precision = precision});
  for (int i = 0; i < 4; ++i) trainer.step();
  return testing::toy_weights(trainer);
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return total;
}

/// The error of a sum of many equal numbers, if what a pass stores is rounded in this way.
double error_of_mean(Rounding rounding) {
  constexpr std::int64_t count = 4096;
  Graph graph;
  const Tensor x = graph.input("x", {count}, DType::f16);
  const Tensor y = scale(x, 1.0001F);
  step::ExecutionOptions options;
  options.rounding = rounding;
  options.seed = 3;
  step::Execution execution(testing::context(), graph.ir(), {y.id()}, options);
  execution.set(x.id(), std::vector<float>(count, 1.0F));
  execution.run();
  double total = 0;
  for (const float v : execution.floats(y.id())) total += static_cast<double>(v);
  return std::abs(total / count - 1.0001);
}

}  // namespace

// O1 and O2 differ if there are sums, norms or parameters read in f32: tests/host/test_precision.cpp covers those.
TEST_CASE("levels train to weights of their own, all near those of f32") {
  const std::vector<float> wide = toy(Precision::level("O0"));
  double size = 0;
  for (const float w : wide) size += std::abs(static_cast<double>(w));
  std::vector<float> before = wide;
  for (const char* level : {"O1", "O3"}) {
    CAPTURE(level);
    Precision precision = Precision::level(level);
    if (precision.loss_scale.kind == LossScale::Kind::dynamic) precision.loss_scale.initial = 1024;
    const std::vector<float> weights = toy(precision);
    CHECK(weights != wide);
    CHECK(weights != before);
    CHECK(distance(weights, wide) < 0.02 * size);
    before = weights;
  }
}

TEST_CASE("a layer, an operator and the partials of each kind of product change what is trained") {
  const Precision base = plain(Precision::mixed());
  const std::vector<float> before = toy(base);
  const auto changed = [&](auto&& change) {
    Precision precision = base;
    change(precision);
    return toy(precision) != before;
  };
  CHECK(changed([](Precision& p) { p.layer("conv", DType::f32); }));
  CHECK(changed([](Precision& p) { p.layer("dense", DType::f32); }));
  CHECK(changed([](Precision& p) { p.operators["linear"] = DType::f32; }));
  CHECK(changed([](Precision& p) { p.partials.matmul = DType::f16; }));
  CHECK(changed([](Precision& p) { p.partials.conv2d = DType::f16; }));
  CHECK(changed([](Precision& p) { p.rounding.activations = Rounding::stochastic; }));
  CHECK(changed([](Precision& p) { p.rounding.gradients = Rounding::stochastic; }));
  CHECK(changed([](Precision& p) { p.rounding.weights = Rounding::stochastic; }));
  CHECK(changed([](Precision& p) { p.moments = DType::f16; }));
  CHECK_FALSE(changed([](Precision&) {}));
}

TEST_CASE("activations rounded stochastically keep their mean, where nearest loses it") {
  CHECK(error_of_mean(Rounding::nearest) > 0.9e-4);
  CHECK(error_of_mean(Rounding::stochastic) < 0.3e-4);
}

TEST_CASE("weights rounded stochastically have the bits that seed, step and place call for, on every tier") {
  constexpr std::int64_t count = 37;
  constexpr float start = 1.5F;
  constexpr float rate = 0x1p-12F;
  Pull pull(count, start, Sgd{.rate = rate}, Precision::float16(1), 42);
  pull.run(1, 2);
  const std::vector<float> got = pull.weights();
  for (std::uint32_t i = 0; i < count; ++i) {
    float w = start;
    for (std::uint32_t step = 0; step < 2; ++step) {
      const auto noise = process::philox4x32({i / 4, 1, step, 0}, process::philox_key(42));
      w = static_cast<float>(reference::half.value(reference::half.stochastic_bits(w - rate, noise[i % 4])));
    }
    CHECK(got[i] == w);
  }
}

TEST_CASE("the noise of weights is keyed on their place among all parameters, whatever group they are in") {
  constexpr std::int64_t count = 37;
  constexpr std::uint32_t second_quad = 32;  // parameters start at multiples of 128 elements
  Graph graph;
  const Tensor first = graph.root().parameter("first", {count}, constant(1.5F));
  const Tensor second = graph.root().parameter("second", {count}, constant(1.5F));
  const Tensor pull = graph.input("pull", {count});
  TrainerOptions options{.loss = sum(mul(add(first, second), pull))};
  options.optimizer = Sgd{.rate = 0x1p-12F};
  options.precision = Precision::float16(1);
  options.groups = {{.pattern = "second", .rate = 1.5F}};
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  const std::vector<float> ones(count, 1);
  trainer.step({{"pull", std::span<const float>(ones)}});
  const auto check = [&](const char* name, std::uint32_t first_quad, float rate) {
    CAPTURE(name);
    const std::vector<float> got = trainer.parameter(name);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto noise = process::philox4x32({first_quad + i / 4, 1, 0, 0}, process::philox_key(42));
      CHECK(got[i] == reference::half.value(reference::half.stochastic_bits(1.5F - rate, noise[i % 4])));
    }
  };
  check("first", 0, 0x1p-12F);
  check("second", second_quad, 0x1.8p-12F);
}

TEST_CASE("saturating gradients train on where infinities skip the step") {
  const auto applied = [](Overflow overflow) {
    Precision precision = plain(Precision::mixed());
    precision.loss_scale = LossScale::fixed(32768);
    precision.overflow = overflow;
    Pull pull(5, 0.001F, Sgd{.rate = 1e-4F}, precision);
    pull.run(4, 1);  // 4 times the loss scale is 131,072: beyond f16
    return pull.trainer().report().applied;
  };
  CHECK(applied(Overflow::infinity) == 0);
  CHECK(applied(Overflow::saturate) == 1);
}

TEST_CASE("weights that the host stores saturate where that is asked for") {
  Precision precision = plain(Precision::mixed());
  precision.overflow = Overflow::saturate;
  Pull pull(1, 1e5F, Sgd{}, precision);
  pull.step(0);
  CHECK(pull.trainer().report().loss == 0);  // infinity times 0 would be NaN
  pull.trainer().set_parameter("w", std::vector<float>{-2e5F});
  pull.step(1);
  CHECK(pull.trainer().report().loss == -65504.0F);
}

TEST_CASE("a file that does not say whether the scale was in the rate is taken as written with the trainer's choice") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint.safetensors";
  for (const bool in_rate : {false, true}) {
    CAPTURE(in_rate);
    const auto pull = [in_rate](float scale) {
      Precision precision = plain(Precision::mixed());
      precision.loss_scale = {.kind = LossScale::Kind::fixed, .initial = scale, .in_rate = in_rate};
      return Pull(4, 1, Sgd{.rate = 0.01F, .momentum = 0.75F}, precision);
    };
    Pull whole = pull(64);
    whole.run(0.3F, 5);
    whole.trainer().save(path);
    whole.run(0.3F, 4);
    {
      const io::SafetensorsFile saved(path);
      io::Metadata metadata = saved.metadata();
      CHECK(metadata.erase("loss_scale_in_rate") == 1);
      io::write_safetensors(path, saved.tensors(), metadata);
    }
    for (const float scale : {64.0F, 1024.0F}) {
      Pull resumed = pull(scale);
      resumed.trainer().load(path);
      resumed.run(0.3F, 4);
      CHECK(resumed.weights() == whole.weights());
    }
  }
}

namespace {

/// What a graph of inputs makes with partials of that type.
std::vector<float> made(const plan::Target& target, DType partials, const std::vector<reference::Array>& values,
                        const std::function<Tensor(const std::vector<Tensor>&)>& build) {
  Graph graph;
  std::vector<Tensor> inputs;
  for (const reference::Array& value : values) {
    inputs.push_back(graph.input("x" + std::to_string(inputs.size()), value.shape));
  }
  const Tensor result = build(inputs);
  step::ExecutionOptions options;
  options.lowering.partials = {partials, partials};
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), {result.id()}, options);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    execution.set(inputs[i].id(), std::vector<float>(values[i].values.begin(), values[i].values.end()));
  }
  execution.run();
  return execution.floats(result.id());
}

}  // namespace

TEST_CASE("f16 partials cost a long dot product its digits, f32 partials do not") {
  constexpr std::int64_t length = 25088;
  const reference::Array a = testing::rounded(testing::uniform({1, length}, 1, 0, 1), DType::f16);
  const reference::Array b = testing::rounded(testing::uniform({length, 1}, 2, 0, 1), DType::f16);
  double exact = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) exact += a.values[i] * b.values[i];
  for (const plan::Target& target : testing::targets()) {
    const auto error = [&](DType partials) {
      const std::vector<float> product = made(target, partials, {a, b}, [](const std::vector<Tensor>& x) {
        return matmul(cast(x[0], DType::f16), cast(x[1], DType::f16));
      });
      return std::abs(static_cast<double>(product[0]) - exact) / exact;
    };
    const double narrow = error(DType::f16);
    const double wide = error(DType::f32);
    MESSAGE("relative error with f32 partials " << wide << ", with f16 partials " << narrow);
    CHECK(wide < 0x1p-11);  // the result is rounded to f16
    // A device that is told to end loops sooner adds up sums of few products, each of which rounds less.
    if (target.max_rounds >= 65535) CHECK(narrow > 0x1p-11);
  }
}

TEST_CASE("f16 partials are those of products of f16 numbers, and not of attention") {
  for (const plan::Target& target : testing::targets()) {
    for (const DType operands : {DType::f32, DType::bf16}) {
      reference::Array a({1, 64}, 64), b({64, 1}, 64);
      const std::vector<float> sum = made(target, DType::f16, {a, b}, [&](const std::vector<Tensor>& x) {
        return matmul(cast(x[0], operands), cast(x[1], operands));
      });
      CHECK(sum.front() == 262144);
    }
    for (const Shape& shape : {Shape{1, 2, 40, 48}, {1, 1, 3, 260}}) {  // heads that wide are products
      const auto attended = [&](DType partials) {
        const reference::Array each = testing::uniform(shape, 3, -1, 1);
        return made(target, partials, {each, each, each}, [](const std::vector<Tensor>& x) {
          const auto half = [&](std::size_t i) { return cast(x[i], DType::f16); };
          return attention(half(0), half(1), half(2));
        });
      };
      CHECK(attended(DType::f16) == attended(DType::f32));
    }
  }
}

TEST_CASE("f16 partials are not of the gradient of attention's mask") {
  const reference::Array random = testing::uniform({1, 1, 40, 48}, 3, -1, 1);
  const std::vector<float> each(random.values.begin(), random.values.end());
  const auto trained = [&](DType partials) {
    Graph graph;
    const Tensor x = graph.input("x", random.shape);
    const Tensor mask = graph.root().parameter("mask", {40, 40}, constant(0));
    TrainerOptions options{.loss = mean(gelu(attention(x, x, x, {.mask = mask})))};
    options.optimizer = Sgd{.rate = 1};
    options.precision = Precision::mixed();
    options.precision.partials = {partials, partials};
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    trainer.step({{"x", std::span<const float>(each)}});
    return trainer.parameter("mask");
  };
  const std::vector<float> wide = trained(DType::f32);
  CHECK(std::ranges::any_of(wide, [](float value) { return value != 0; }));
  CHECK(trained(DType::f16) == wide);
}

}  // namespace halfstep
