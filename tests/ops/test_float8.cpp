// Linear layers whose factors have 8 bits.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "graph/dtype.h"
#include "graph/ir.h"
#include "harness/device.h"
#include "ops/gemm/float8.h"
#include "passes/backward.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

/// What is stored of a tensor, and what its values count.
struct Stored {
  std::vector<float> values;
  float unit = 0;
};

Stored stored(const std::vector<float>& x, const plan::Target& target) {
  Graph graph = testing::settled_graph();
  const Tensor input = graph.input("x", {static_cast<std::int64_t>(x.size())}, DType::f16);
  const ops::Float8 made = ops::to_float8(input);
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), {made.values.id(), made.unit.id()}, options);
  execution.set(input.id(), x);
  execution.run();
  return {execution.floats(made.values.id()), execution.floats(made.unit.id()).front()};
}

/// The power of two that brings `largest` to between 0.875 and 1.75.
float scale_of(float largest) {
  return std::ldexp(1.0F, static_cast<int>(std::floor(std::log2(1.75F / largest))));
}

/// The same, by definition: of each element, the nearest of all numbers that E4M3 has, ties to the even one.
Stored expected(const std::vector<float>& x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float scale = scale_of(largest);
  std::vector<double> numbers;  // of E4M3, in their order
  for (int bits = 0; bits < 0x7f; ++bits) {
    const int exponent = bits >> 3;
    const double significand = (exponent > 0 ? 1.0 : 0.0) + (bits & 7) / 8.0;
    numbers.push_back(std::ldexp(significand, std::max(exponent, 1) - 7));
  }
  CHECK(numbers.back() == 448);
  std::vector<float> values;
  for (const float v : x) {
    const double wanted = std::abs(static_cast<double>(v)) * static_cast<double>(scale) * 256;
    const auto above = std::min(std::ranges::lower_bound(numbers, wanted), numbers.end() - 1);
    const auto below = above == numbers.begin() ? above : above - 1;
    const double up = *above - wanted;
    const double down = wanted - *below;
    const bool is_up = up < down || (up == down && (above - numbers.begin()) % 2 == 0);
    values.push_back(static_cast<float>(std::copysign((is_up ? *above : *below) / 256, static_cast<double>(v))));
  }
  return {values, 1 / scale};
}

/// Numbers of f16 that have these magnitudes.
std::vector<float> some(std::size_t count, float magnitude, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word =
        process::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, process::philox_key(seed))[0];
    values[i] = graph::stored(DType::f16, (static_cast<float>(word) * 0x1p-31F - 1) * magnitude);
  }
  return values;
}

/// What a tensor's rounded values are.
std::vector<double> rounded(const std::vector<float>& x) {
  const Stored made = expected(x);
  std::vector<double> values;
  for (const float v : made.values) values.push_back(static_cast<double>(v) * static_cast<double>(made.unit));
  return values;
}

constexpr std::int64_t n = 37;
constexpr std::int64_t in = 83;
constexpr std::int64_t out = 29;

/// y, dx, dw and db of rounded factors.
std::vector<std::vector<double>> linear_and_gradients(const std::vector<float>& x, const std::vector<float>& w,
                                                      const std::vector<float>& b, const std::vector<float>& dy) {
  const std::vector<double> x8 = rounded(x);
  const std::vector<double> w8 = rounded(w);
  const std::vector<double> dy8 = rounded(dy);
  std::vector<double> y(dy.size());
  std::vector<double> dx(x.size());
  std::vector<double> dw(w.size());
  std::vector<double> db(b.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      const auto at = static_cast<std::size_t>(i * out + j);
      y[at] = static_cast<double>(b[static_cast<std::size_t>(j)]);
      db[static_cast<std::size_t>(j)] += static_cast<double>(dy[at]);
      for (std::int64_t l = 0; l < in; ++l) {
        const auto of_x = static_cast<std::size_t>(i * in + l);
        const auto of_w = static_cast<std::size_t>(l * out + j);
        y[at] += x8[of_x] * w8[of_w];
        dx[of_x] += dy8[at] * w8[of_w];
        dw[of_w] += x8[of_x] * dy8[at];
      }
    }
  }
  return {y, dx, dw, db};
}

}  // namespace

TEST_CASE("every number of f16 is rounded to the nearest of 8 bits, after a power of two of the tensor's own") {
  std::vector<float> all;
  const graph::Narrow& half = *graph::info(DType::f16).narrow;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float v = half.value_of(static_cast<std::uint16_t>(bits));
    if (std::isfinite(v)) all.push_back(v);
  }
  for (const float largest : {65504.0F, 1.75F, 1.76F, 0.875F, 0x1p-14F, 0x3p-24F, 0x1p-24F}) {
    CAPTURE(largest);
    std::vector<float> x;
    for (const float v : all) {
      if (std::abs(v) <= largest) x.push_back(v);
    }
    const Stored wanted = expected(x);
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(ops::nearest_float8(x[i] / wanted.unit) == wanted.values[i]);
    for (const plan::Target& target : testing::targets()) {
      const Stored got = stored(x, target);
      CHECK(got.unit == wanted.unit);
      CHECK(got.values == wanted.values);
    }
  }
}

TEST_CASE("a tensor of zeros stays so, and one with a number that is not finite has none that is") {
  const plan::Target& target = testing::context().target();
  const Stored zeros = stored({0, -0.0F, 0, 0, 0}, target);
  CHECK(zeros.values == std::vector<float>(5));
  CHECK(std::isfinite(zeros.unit));
  for (const float bad : {infinite, -infinite, std::nanf("")}) {
    for (const std::size_t at : {0U, 3U, 4098U}) {
      std::vector<float> x = some(4099, 1, 1);
      x[at] = bad;
      const Stored made = stored(x, target);
      CHECK(std::isnan(made.unit));
      CHECK(std::ranges::all_of(made.values, [](float v) { return std::isnan(v); }));
    }
  }
}

TEST_CASE("the largest magnitude is found wherever it is, in tensors of every size") {
  std::vector<std::size_t> sizes{1, 3, 4, 5, 1023, 1025, 40000, 1U << 20};
  if (testing::every_variant()) sizes.push_back(10000001);
  for (const std::size_t size : sizes) {
    if (!testing::device_takes(size / 256, 2 * size)) continue;
    for (const std::size_t at : {std::size_t{0}, size / 3, size - 1}) {
      CAPTURE(size);
      std::vector<float> x(size, 0.25F);
      x[at] = -3;
      for (const plan::Target& target : testing::targets()) CHECK(stored(x, target).unit == 2);
    }
  }
}

TEST_CASE("a linear layer and its gradients multiply the numbers that 8 bits have") {
  const std::vector<float> x = some(n * in, 3, 1);
  const std::vector<float> w = some(in * out, 0.01F, 2);
  const std::vector<float> b = some(out, 1, 3);
  const std::vector<float> dy = some(n * out, 0x1p-9F, 4);
  const std::vector<std::vector<double>> expected_results = linear_and_gradients(x, w, b, dy);
  for (const plan::Target& target : testing::product_targets()) {
    Graph graph = testing::settled_graph();
    const Tensor of_x = graph.input("x", {n, in}, DType::f16);
    const Tensor of_w = graph.input("w", {in, out}, DType::f16);
    const Tensor of_b = graph.input("b", {out}, DType::f16);
    const Tensor of_dy = graph.input("dy", {n, out}, DType::f16);
    const Tensor one = graph.input("one", {}, DType::f16);
    const Tensor of_y = ops::float8_linear(of_x, of_w, of_b);
    const graph::ValueId wanted[] = {of_x.id(), of_w.id(), of_b.id()};
    graph::Ir& ir = graph::ir_of(of_y);
    std::vector<graph::ValueId> outputs = passes::add_backward(ir, sum(mul(of_y, of_dy)).id(), one.id(), wanted);
    outputs.insert(outputs.begin(), of_y.id());
    step::ExecutionOptions options;
    options.target = target;
    step::Execution execution(testing::context(), ir, outputs, options);
    execution.set(of_x.id(), x);
    execution.set(of_w.id(), w);
    execution.set(of_b.id(), b);
    execution.set(of_dy.id(), dy);
    execution.set(one.id(), std::vector{1.0F});
    execution.run();
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      CAPTURE(k);
      const std::vector<float> got = execution.floats(outputs[k]);
      const std::vector<double>& want = expected_results[k];
      const double largest = std::abs(*std::ranges::max_element(want, {}, [](double v) { return std::abs(v); }));
      REQUIRE(got.size() == want.size());
      double off = 0;
      for (std::size_t i = 0; i < got.size(); ++i) off = std::max(off, std::abs(static_cast<double>(got[i]) - want[i]));
      CHECK(off <= 0x1p-11 * largest);  // its rounding to f16: sums of k below 84 are off by less than 2^-16
    }
  }
}

TEST_CASE("linear layers in f16 have factors of 8 bits where the precision says so, and no others") {
  Graph graph;
  const Scope root = graph.root();
  const Tensor x = graph.input("x", {64, 48});
  const Tensor hidden = relu(linear(x, (root / "first").parameter("weight", {48, 32}, constant(0.01F))));
  const Tensor y = linear(hidden, (root / "head").parameter("weight", {32, 8}, constant(0.02F)));
  const auto explained = [&](const Precision& precision) {
    TrainerOptions options;
    options.loss = mean(mul(y, y));
    options.optimizer = Sgd{.rate = 0.01F};
    options.precision = precision;
    return Trainer::compile(testing::device(), graph, options).inspect().explain();
  };
  const auto count = [](const std::string& text, const std::string& word) {
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  CHECK(count(explained(Precision::mixed()), "float8") == 0);
  const int both = count(explained(Precision::float8()), "float8_matmul");
  const int one = count(explained(Precision::float8().layer("head", DType::f32)), "float8_matmul");
  CHECK(both > one);
  CHECK(one > 0);
  Precision none = Precision::float32();
  none.float8_linear = true;
  CHECK_THROWS_WITH_AS(explained(none), doctest::Contains("operators in f16 with float8_linear, got none"), Error);
  Precision short_sums = Precision::float8();
  short_sums.partials.matmul = DType::f16;
  CHECK_THROWS_WITH_AS(explained(short_sums), doctest::Contains("sums of products in f32 with float8_linear"), Error);
}

TEST_CASE("training with factors of 8 bits converges, takes the same steps again, and skips one that overflows") {
  Graph graph;
  const Scope root = graph.root();
  const Tensor x = graph.input("x", {32, 24});
  const Tensor wanted = graph.input("wanted", {32, 8});
  const Tensor hidden = relu(linear(x, (root / "first").parameter("weight", {24, 64}, he(24))));
  const Tensor off = sub(linear(hidden, (root / "head").parameter("weight", {64, 8}, he(64))), wanted);
  TrainerOptions options;
  options.loss = mean(mul(off, off));
  options.optimizer = Adam{.rate = 0.01F};
  options.precision = Precision::float8();
  const std::vector<float> from = some(32 * 24, 1, 5);
  const std::vector<float> to = some(32 * 8, 1, 6);
  const std::map<std::string, Values> inputs{{"x", std::span<const float>(from)},
                                             {"wanted", std::span<const float>(to)}};
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  Trainer again = Trainer::compile(testing::device(), graph, options);
  const auto loss_after = [&](Trainer& of, int steps) {
    for (int i = 0; i < steps; ++i) of.step(inputs);
    of.finish();
    return of.report().loss;
  };
  const float first = loss_after(trainer, 1);
  const float last = loss_after(trainer, 200);
  CHECK(last < first / 50);
  CHECK(loss_after(again, 201) == last);
  CHECK(trainer.parameter("first/weight") == again.parameter("first/weight"));
  const std::vector<float> before = trainer.parameter("head/weight");
  std::vector<float> bad = from;
  bad[100] = infinite;
  trainer.step({{"x", std::span<const float>(bad)}, {"wanted", std::span<const float>(to)}});
  trainer.finish();
  CHECK(trainer.report().overflowed);
  CHECK(trainer.parameter("head/weight") == before);
}
