#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/device.h"
#include "harness/values.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One weight tensor w {3, 5} and an input x of its shape: y = w x, loss = sum(y). The gradient of w is x.
struct Product {
  std::vector<float> x = std::vector<float>(15, 1.0F);
  Trainer trainer;

  explicit Product(Precision precision, std::string trace = {}, float start = 1)
      : trainer(make(std::move(precision), std::move(trace), start)) {}

  static Trainer make(Precision precision, std::string trace, float start) {
    Graph graph;
    const Tensor x = graph.input("x", {3, 5});
    const Tensor w = graph.root().parameter("w", {3, 5}, constant(start));
    TrainerOptions options{.loss = sum(relu(mul(w, x)))};
    options.optimizer = Sgd{.rate = 0.5F};
    options.precision = std::move(precision);
    options.trace = std::move(trace);
    return Trainer::compile(testing::device(), graph, options);
  }

  void step() { trainer.step({{"x", std::span<const float>(x)}}); }
};

Precision unscaled(Precision precision) {
  precision.loss_scale = LossScale::none();
  precision.rounding.weights = Rounding::nearest;
  return precision;
}

TensorStatistics gradient_of(const std::vector<float>& x, const Precision& precision) {
  Product product(unscaled(precision));
  product.x = x;
  product.trainer.inspect().watch("w.gradient");
  product.step();
  product.trainer.finish();
  const std::vector<TensorStatistics> records = product.trainer.inspect().take_records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].name == "w.gradient");
  CHECK(records[0].step == 1);
  return records[0];
}

std::string stopped_with(Product& product) {
  try {
    product.step();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the recorder counts, sums and sorts by exponent what a tensor holds, and no padding") {
  std::vector<float> x(15, 0.25F);
  x[0] = -3;
  x[7] = 0;
  x[9] = 65504;
  x[10] = 0x1p-14F;    // f16's smallest normal number
  x[11] = 0x1.8p-15F;  // above half of it
  x[14] = 0x1p-20F;
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    // For negative x the ReLU gives no gradient.
    const TensorStatistics seen = gradient_of(x, precision);
    CHECK(seen.elements == 15);
    CHECK(seen.zeros == 2);
    CHECK(seen.large == 1);
    CHECK(seen.subnormals == 2);
    CHECK(seen.min == 0);
    CHECK(seen.max == 65504);
    CHECK(seen.infinities + seen.nans == 0);
    CHECK(seen.mean_magnitude ==
          doctest::Approx((65504 + 9 * 0.25 + 0x1p-14 + 0x1.8p-15 + 0x1p-20) / 15).epsilon(1e-6));
    CHECK(seen.rms == doctest::Approx(std::sqrt((65504.0 * 65504.0 + 9 * 0.0625) / 15)).epsilon(1e-6));
    const auto bin = [&](int exponent) {
      return seen.exponents[static_cast<std::size_t>(exponent - TensorStatistics::first_exponent)];
    };
    CHECK(bin(-2) == 9);
    CHECK(bin(15) == 1);
    CHECK(bin(-14) == 1);
    CHECK(bin(-15) == 1);
    CHECK(bin(-20) == 1);
    CHECK(std::accumulate(seen.exponents.begin(), seen.exponents.end(), std::uint64_t{0}) == 13);
  }
}

TEST_CASE("the recorder knows the means of numbers whose sum overflows, or whose squares over- or underflow") {
  for (const float size : {1e-36F, 1e-25F, 1e20F, 3e38F}) {
    CAPTURE(size);
    std::vector<float> x(15, size);
    const TensorStatistics alike = gradient_of(x, Precision::float32());
    CHECK(alike.rms / static_cast<double>(size) == doctest::Approx(1));
    CHECK(alike.mean_magnitude / static_cast<double>(size) == doctest::Approx(1));
    for (std::size_t i = 0; i < 12; ++i) x[i] = 1;
    const TensorStatistics seen = gradient_of(x, Precision::float32());
    CHECK(seen.rms == doctest::Approx(std::hypot(std::sqrt(0.2) * static_cast<double>(size), std::sqrt(0.8))));
    CHECK(seen.mean_magnitude == doctest::Approx(0.2 * static_cast<double>(size) + 0.8));
  }
}

TEST_CASE("the recorder counts all of a tensor that takes many workgroups") {
  constexpr std::int64_t count = 300001;
  testing::Pull pull(count, 0, Sgd{.rate = 0}, Precision::float32());
  pull.trainer().inspect().watch("w.gradient");
  std::vector<float> gradients(count, 0.25F);
  gradients.front() = 4;
  gradients.back() = -8;
  pull.trainer().step({{"pull", std::span<const float>(gradients)}});
  pull.trainer().finish();
  const std::vector<TensorStatistics> records = pull.trainer().inspect().take_records();
  REQUIRE(records.size() == 1);
  const TensorStatistics& seen = records.front();
  CHECK(seen.elements == count);
  CHECK(seen.min == -8);
  CHECK(seen.max == 4);
  CHECK(seen.mean_magnitude == doctest::Approx(0.25 + 11.5 / count).epsilon(1e-5));
  CHECK(seen.exponents[static_cast<std::size_t>(-2 - TensorStatistics::first_exponent)] == count - 2);
}

TEST_CASE("the recorder's means of many equal numbers are that number") {
  if (testing::context().target().max_rounds < 65535) return;  // a device that is told to end loops sooner
  constexpr std::int64_t count = 1 << 24;
  testing::Pull pull(count, 0, Sgd{.rate = 0}, Precision::float32());
  pull.trainer().inspect().watch("w.gradient");
  const std::vector<float> gradients(count, 0.7F);
  pull.trainer().step({{"pull", std::span<const float>(gradients)}});
  pull.trainer().finish();
  const TensorStatistics seen = pull.trainer().inspect().take_records().front();
  CHECK(seen.mean_magnitude == doctest::Approx(static_cast<double>(0.7F)).epsilon(1e-5));
  CHECK(seen.rms == doctest::Approx(static_cast<double>(0.7F)).epsilon(1e-5));
}

TEST_CASE("the recorder counts infinities and NaNs apart, and looks at one step out of as many as asked") {
  std::vector<float> x(15, 1.0F);
  x[3] = infinity;
  x[5] = std::nanf("");
  const TensorStatistics seen = gradient_of(x, Precision::mixed());
  CHECK(seen.infinities == 1);
  CHECK(seen.nans >= 1);
  CHECK(seen.max == 1);
  Product product(unscaled(Precision::mixed()));
  product.trainer.inspect().watch("*gradient", 3);
  for (int i = 0; i < 7; ++i) product.step();
  product.trainer.finish();
  std::vector<std::uint64_t> steps;
  for (const TensorStatistics& record : product.trainer.inspect().take_records()) steps.push_back(record.step);
  CHECK(steps == std::vector<std::uint64_t>{1, 4, 7});
  CHECK(product.trainer.report().step == 7);
  CHECK_THROWS_WITH_AS(product.trainer.inspect().watch("no such*"), doctest::Contains("'no such*'"), Error);
  for (int i = 0; i < 3; ++i) product.step();
  product.trainer.finish();
  CHECK(product.trainer.inspect().take_records().size() == 1);  // as before
}

TEST_CASE("watching changes no bit of what is trained") {
  const auto weights = [](bool watched) {
    Product product(Precision::float16());
    if (watched) product.trainer.inspect().watch("*", 2);
    for (int i = 0; i < 5; ++i) product.step();
    return product.trainer.parameter("w");
  };
  CHECK(weights(false) == weights(true));
}

TEST_CASE("any tensor of the last step that is kept can be read, and no other") {
  Product product(unscaled(Precision::mixed()), "*");
  product.x[4] = 3;
  product.step();
  CHECK(product.trainer.inspect().trace("mul:0") == product.x);
  CHECK(product.trainer.inspect().trace("w.gradient") == product.x);
  CHECK_THROWS_WITH_AS(product.trainer.inspect().trace("mul:9"), doctest::Contains("'mul:9'"), Error);
  Product other(unscaled(Precision::mixed()));
  other.step();
  CHECK_THROWS_WITH_AS(other.trainer.inspect().trace("mul:0"), doctest::Contains("trace"), Error);
}

TEST_CASE("an infinity stops training at the operator that made it first, with what it was made of") {
  Precision precision = unscaled(Precision::mixed());
  precision.stop_on.overflow = true;
  Product product(precision, {}, 1000);
  product.step();
  const std::vector<float> before = product.trainer.parameter("w");
  product.x[7] = 100;  // 100,000: beyond the range of f16
  const std::string text = stopped_with(product);
  CAPTURE(text);
  CHECK(text.find("step 2, got infinity from mul in 'mul:0' f16 {3, 5} at {1, 2}") != std::string::npos);
  CHECK(text.find("'w' 999.5") != std::string::npos);
  CHECK(text.find("'x' 100") != std::string::npos);
  CHECK(text.find("OFLO 1, DIV0 0, INV 0") != std::string::npos);
  CHECK(product.trainer.parameter("w") == before);
  product.x[7] = 1;
  product.step();
  CHECK(product.trainer.report().applied == 2);
  CHECK(product.trainer.report().skipped == 0);
}

TEST_CASE("what is finite in f32 and too large for bf16 stops training, or saturates") {
  constexpr float start = 0x1.FCp64F;
  constexpr float pull = 0x1.02p63F;  // 2^-15 less than twice 2^127 with the start; bf16 ends 2^-8 before that
  Precision precision = Precision::bfloat16();
  precision.stop_on.overflow = true;
  Product product(precision, {}, start);
  product.step();
  product.x[7] = pull;
  const std::string text = stopped_with(product);
  CAPTURE(text);
  CHECK(text.find("step 2, got infinity from mul in 'mul:0' bf16 {3, 5} at {1, 2}") != std::string::npos);
  Precision saturating = Precision::bfloat16();
  saturating.overflow = Overflow::saturate;
  Product kept(saturating, "*", start);
  kept.x[7] = pull;
  kept.step();
  CHECK(kept.trainer.inspect().trace("mul:0")[7] == 0x1.FEp127F);
}

TEST_CASE("a NaN stops training where that is asked for, and goes on to skip steps where it is not") {
  Precision precision = unscaled(Precision::mixed());
  precision.stop_on.invalid = true;
  Product product(precision);
  product.x[2] = std::nanf("");
  const std::string text = stopped_with(product);
  CHECK(text.find("NaN from feed in 'x'") != std::string::npos);
  CHECK(text.find("OFLO 0, DIV0 0, INV 1") != std::string::npos);
  Product both(precision);
  both.x[1] = infinity;
  both.x[2] = std::nanf("");
  CHECK(stopped_with(both).find("NaN from feed in 'x' f16 {3, 5} at {0, 2}") != std::string::npos);
  Product lenient(unscaled(Precision::mixed()));
  lenient.x[2] = std::nanf("");
  CHECK(stopped_with(lenient).empty());
}

/// y = x w with x = 1e-4 at one position of each row, fitted to targets of 1 or -1. A gradient of w is 1e-4 times one
/// of y, which the mean over all of y has made small. Holds what was learned, and the statistics of the gradients.
struct Underflow {
  static constexpr std::int64_t rows = 64;
  static constexpr std::int64_t columns = 256;

  explicit Underflow(const Precision& precision) : trainer(make(precision)) {
    for (std::int64_t i = 0; i < rows; ++i) x[static_cast<std::size_t>(i * (rows + 1))] = 1e-4F;
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = i * 7 % 3 == 0 ? 1.0F : -1.0F;
    trainer.inspect().watch("w.gradient", 10);
    step();
    first = loss();
    for (int i = 0; i < 59; ++i) step();
    last = loss();
    gradients = trainer.inspect().take_records();
  }

  static Trainer make(const Precision& precision) {
    Graph graph;
    const Tensor x = graph.input("x", {rows, rows});
    const Tensor targets = graph.input("targets", {rows, columns});
    const Tensor w = graph.root().parameter("w", {rows, columns}, constant(0));
    TrainerOptions options{.loss = mse_loss(matmul(x, w), targets)};
    options.optimizer = Adam{.rate = 200, .epsilon = 1e-12F};  // w must reach 1e4
    options.precision = precision;
    return Trainer::compile(testing::device(), graph, options);
  }

  void step() { trainer.step({{"x", std::span<const float>(x)}, {"targets", std::span<const float>(targets)}}); }

  float loss() {
    trainer.finish();
    return trainer.report().loss;
  }

  double share_of_zeros() const {
    return static_cast<double>(gradients.back().zeros) / static_cast<double>(gradients.back().elements);
  }

  std::vector<float> x = std::vector<float>(rows * rows, 0.0F);
  std::vector<float> targets = std::vector<float>(rows * columns, 0.0F);
  Trainer trainer;
  float first = 0;
  float last = 0;
  std::vector<TensorStatistics> gradients{};
};

TEST_CASE("gradients that underflow are seen as zeros and train nothing; a loss scale brings them back") {
  for (const Precision& policy : {Precision::mixed(), Precision::float16()}) {
    CAPTURE(policy.name);
    Precision precision = policy;
    precision.loss_scale = LossScale::none();
    const Underflow lost(precision);
    CHECK(lost.share_of_zeros() == 1);
    CHECK(lost.last == lost.first);
    precision.loss_scale = LossScale::dynamic();
    const Underflow kept(precision);
    CHECK(kept.share_of_zeros() < 0.01);
    CHECK(kept.last < 0.1F * kept.first);
  }
}

/// Rows of ones divided by {2, 1, d}, after a product that overflows.
Trainer division(StopOn stop_on) {
  Graph graph;
  const Tensor d = graph.input("d", {3});
  const Tensor w = graph.root().parameter("w", {5, 3}, constant(1));
  const Tensor overflowing = sum(mul(scale(w, 60000), scale(w, 60000)));
  TrainerOptions options{.loss = add(sum(div(w, d)), scale(overflowing, 0x1p-30F))};
  options.optimizer = Sgd{.rate = 0};
  options.precision = unscaled(Precision::mixed());
  options.precision.stop_on = stop_on;
  return Trainer::compile(testing::device(), graph, options);
}

TEST_CASE("a division by zero stops training where that is asked for, and other infinities then do not") {
  Trainer trainer = division({.divide_by_zero = true});
  std::vector<float> d{2, 1, 4};
  trainer.step({{"d", std::span<const float>(d)}});
  d[1] = 0;
  CHECK_THROWS_WITH_AS(trainer.step({{"d", std::span<const float>(d)}}),
                       doctest::Contains("f16 {5, 3} at {0, 1}, of inputs 'w' 1"), Error);
  CHECK_THROWS_WITH_AS(trainer.step({{"d", std::span<const float>(d)}}), doctest::Contains("OFLO 0, DIV0 1, INV 0"),
                       Error);
  d[1] = 1e-6F;
  CHECK_THROWS_WITH_AS(trainer.step({{"d", std::span<const float>(d)}}), doctest::Contains("OFLO 1, DIV0 0, INV 0"),
                       Error);
  Trainer stopped = division({.overflow = true});
  d[1] = 1;
  CHECK_THROWS_WITH_AS(stopped.step({{"d", std::span<const float>(d)}}), doctest::Contains("infinity from mul"), Error);
}

TEST_CASE("where divisions stop training, the text says which infinity one was given and which it made") {
  Graph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor d = graph.input("d", {4});
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  TrainerOptions options{.loss = sum(div(mul(w, x), d))};
  options.precision = unscaled(Precision::float32());
  options.precision.stop_on.divide_by_zero = true;
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  const auto stopped = [&](const std::vector<float>& dividends, const std::vector<float>& divisors) -> std::string {
    try {
      trainer.step({{"x", std::span<const float>(dividends)}, {"d", std::span<const float>(divisors)}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string made = stopped({0, 1, 1, 1}, {0, 1, 0, 1});
  CAPTURE(made);
  CHECK(made.find("infinity from div") != std::string::npos);
  CHECK(made.find("at {2}") != std::string::npos);
  CHECK(made.find("OFLO 0, DIV0 1, INV 0") != std::string::npos);
  const std::string given = stopped({1, infinity, 1, 1}, {1, 2, 1, 1});
  CAPTURE(given);
  CHECK(given.find("at {1}") != std::string::npos);
  CHECK(given.find("OFLO 0, DIV0 0, INV 0") != std::string::npos);
}

TEST_CASE("stopping and a dynamic loss scale exclude each other") {
  Precision precision = Precision::mixed();
  precision.stop_on.overflow = true;
  CHECK_THROWS_WITH_AS(Product{precision}, doctest::Contains("dynamic"), Error);
}

}  // namespace halfstep
