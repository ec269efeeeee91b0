// Programs with fused elementwise work give the same numbers as programs without fusion.
#include <halfstep/encodings.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/norm/batch_norm.h"
#include "passes/backward.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

/// A graph, its input values, and the tensors that are compared.
class TestGraph {
 public:
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const graph::Ir& ir() const { return graph_.ir(); }

 protected:
  Tensor input(Shape shape, DType dtype) {
    inputs_.push_back(graph_.input(fmt::format("input{}", inputs_.size()), std::move(shape), dtype));
    return inputs_.back();
  }

  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;

 private:
  Graph graph_ = testing::settled_graph();
};

/// A random graph of elementwise operators, broadcasts, sums and matrix products, whose values all stay near 1.
class RandomGraph : public TestGraph {
 public:
  RandomGraph(std::uint32_t seed, DType dtype) : random_(seed) {
    const auto columns = 1 + std::int64_t{below(9)};
    wholes_ = {input({5, columns}, dtype), input({5, columns}, dtype)};
    parts_ = {input({columns}, dtype), input({5, 1}, dtype), input({}, dtype)};
    weights_ = {input({columns, columns}, dtype)};
    for (std::uint32_t i = 4 + below(12); i > 0; --i) wholes_.push_back(next());
    outputs_ = {wholes_.back(), any(), mean(any(), {0})};
  }

 private:
  std::uint32_t below(std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_); }
  Tensor any() { return wholes_[wholes_.size() - 1 - below(std::min<std::uint32_t>(3, size()))]; }
  Tensor part() { return parts_[below(static_cast<std::uint32_t>(parts_.size()))]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(wholes_.size()); }

  Tensor next() {
    switch (below(11)) {
      case 0:
        return relu(any());
      case 1:
        return tanh(any());
      case 2:
        return sigmoid(any());
      case 3:
        return tanh(add(any(), any()));
      case 4:
        return scale(sub(any(), part()), 0.5F);
      case 5:
        return mul(part(), sigmoid(any()));
      case 6:
        return tanh(bias(any(), parts_[0]));
      case 7:
        return cast(cast(any(), DType::f32), any().dtype());
      case 8:
        return sub(any(), mean(any(), {1}, true));
      case 9:
        return tanh(linear(any(), weights_[0], parts_[0]));
      default:
        return mul(any(), any());
    }
  }

  std::mt19937 random_;
  std::vector<Tensor> wholes_;
  std::vector<Tensor> parts_;
  std::vector<Tensor> weights_;
};

struct Results {
  std::vector<std::vector<float>> values;
  std::size_t dispatches = 0;
};

/// How f16 results are stored, and the magnitude of the inputs.
struct Storing {
  Rounding rounding = Rounding::nearest;
  Overflow overflow = Overflow::infinity;
  double most = 1;
};

Results run(const TestGraph& graph, plan::Target target, bool fusion, const Storing& storing = {}) {
  target.fusion = fusion;
  step::ExecutionOptions options;
  options.rounding = storing.rounding;
  options.overflow = storing.overflow;
  options.guard_bytes = 256;
  options.target = target;
  std::vector<graph::ValueId> ids;
  for (const Tensor& output : graph.outputs()) ids.push_back(output.id());
  step::Execution execution(testing::context(), graph.ir(), ids, options);
  std::uint32_t seed = 0;
  for (const Tensor& input : graph.inputs()) {
    const reference::Array values = testing::uniform(input.shape(), ++seed, -storing.most, storing.most);
    execution.set(input.id(), std::vector<float>(values.values.begin(), values.values.end()));
  }
  execution.run();
  CHECK(execution.guards_intact());
  Results results{{}, execution.plan().program.dispatches.size()};
  for (const graph::ValueId id : ids) results.values.push_back(execution.floats(id));
  return results;
}

/// Features, which are f32 as the coordinates are, in the type of what reads them; of coordinates too that were of it.
class CastEncoding : public TestGraph {
 public:
  explicit CastEncoding(DType dtype) {
    const auto encoded = [&](Tensor coordinates) {
      const Tensor features = frequency_encoding(coordinates, 3);
      outputs_.push_back(dtype == DType::f32 ? features : cast(features, dtype));
    };
    encoded(input({37, 3}, DType::f32));
    const Tensor narrow = input({37, 2}, dtype);
    encoded(dtype == DType::f32 ? narrow : cast(narrow, DType::f32));
  }
};

/// A norm that is computed in f32 of a tensor in another type, as mixed precision does, with its weight and bias in
/// f32, and their gradients.
class CastNorm : public TestGraph {
 public:
  explicit CastNorm(DType dtype) {
    const Tensor x = input({5, 10}, dtype);
    const Tensor weight = input({10}, DType::f32);
    const Tensor offset = input({10}, DType::f32);
    const Tensor seed = input({}, dtype);
    const Tensor y = cast(layer_norm(cast(x, DType::f32), weight, offset), dtype);
    const Tensor loss = mean(mul(y, y));
    const graph::ValueId wanted[] = {x.id(), weight.id(), offset.id()};
    outputs_ = {y, loss};
    for (const graph::ValueId id : passes::add_backward(graph::ir_of(loss), loss.id(), seed.id(), wanted)) {
      outputs_.push_back(graph::ir_of(loss).tensor(id));
    }
  }
};

/// A norm in f32, and what is rounded to `dtype` on its way to it.
class RoundedBesideNorm : public TestGraph {
 public:
  explicit RoundedBesideNorm(DType dtype) {
    const Tensor y = layer_norm(input({5, 10}, DType::f32), input({10}, DType::f32), input({10}, DType::f32));
    const Tensor rounded = cast(cast(input({5, 10}, DType::f32), dtype), DType::f32);
    outputs_ = {add(y, rounded)};
  }
};

/// A network layer and its gradients: a product with an activation as epilogue, also in the backward pass.
class Layer : public TestGraph {
 public:
  static constexpr std::size_t bias_gradient = 3;  ///< of the convolution, as a place in outputs()
  static constexpr double bias_terms = 2 * 7 * 6;  ///< pixels that it is summed over

  explicit Layer(DType dtype) {
    for (const Shape& shape : {Shape{2, 7, 6, 3}, {3, 3, 3, 5}, {5}, {45, 7}, {7}, {}}) input(shape, dtype);
    Tensor x = conv2d(inputs_[0], inputs_[1], {.padding = {1, 1}}, inputs_[2]);
    x = max_pool2d(relu(x));
    x = relu(linear(flatten(x), inputs_[3], inputs_[4]));
    const Tensor loss = mean(mul(x, x));
    const graph::ValueId wanted[] = {inputs_[0].id(), inputs_[1].id(), inputs_[2].id(), inputs_[3].id()};
    outputs_ = {loss};
    for (const graph::ValueId id : passes::add_backward(graph::ir_of(loss), loss.id(), inputs_[5].id(), wanted)) {
      outputs_.push_back(graph::ir_of(loss).tensor(id));
    }
  }
};

/// A residual block whose shortcut skips pixels and adds channels.
class Block : public TestGraph {
 public:
  explicit Block(DType dtype) {
    for (const Shape& shape : {Shape{2, 6, 8, 4}, {3, 3, 4, 8}, {8}, {8}, {8}}) input(shape, dtype);
    const RunningStatistics running{input({8}, DType::f32), input({8}, DType::f32)};
    const Tensor x = inputs_[0];
    // With a bias: without one, the GEMM would output the norm's moments, summed in another order than the norm's own.
    const Tensor images = conv2d(x, inputs_[1], {.stride = {2, 2}, .padding = {1, 1}}, inputs_[4]);
    const auto norm = ops::batch_norm_training(images, inputs_[2], inputs_[3], running, {});
    const Tensor shortcut = pad(slice(x, {0, 0, 0, 0}, {2, 6, 8, 4}, {1, 2, 2, 1}), {0, 0, 0, 2}, {0, 0, 0, 2});
    outputs_ = {relu(add(norm.y, shortcut)), norm.next_mean, sigmoid(pad(x, {0, 1, 1, 0}, {0, 1, 1, 0}))};
  }
};

/// A product with moments of its columns for the batch norm of all its rows, and two norms that need others.
class NormsOfOneProduct : public TestGraph {
 public:
  NormsOfOneProduct() {
    const Tensor x = conv2d(input({2, 5, 6, 3}, DType::f32), input({3, 3, 3, 8}, DType::f32), {.padding = {1, 1}});
    const Tensor weight = input({8}, DType::f32), offset = input({8}, DType::f32);
    outputs_ = {normed(x), group_norm(x, 2, weight, offset), normed(reshape(x, {2, 5, 12, 4}))};
  }

 private:
  Tensor normed(Tensor x) {
    const auto channels = [&] { return input({x.dim(-1)}, DType::f32); };
    const Tensor weight = channels(), offset = channels(), mean = channels(), variance = channels();
    return ops::batch_norm_training(x, weight, offset, {mean, variance}, {}).y;
  }
};

bool has(const Results& results, float value) {
  return std::ranges::any_of(results.values, [&](const auto& values) { return std::ranges::count(values, value) > 0; });
}

/// The same bits; but the last ones of a bias's gradient, result `sums`, depend on the order of adding up, which is
/// another where a product does that on its way.
void expect_same(const Results& got, const Results& wanted, std::optional<std::size_t> sums = {}) {
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    if (i != sums) {
      CHECK(got.values[i] == wanted.values[i]);
      continue;
    }
    REQUIRE(got.values[i].size() == wanted.values[i].size());
    for (std::size_t j = 0; j < wanted.values[i].size(); ++j) {
      const auto want = static_cast<double>(wanted.values[i][j]);
      CHECK(std::abs(static_cast<double>(got.values[i][j]) - want) <= Layer::bias_terms * 0x1p-24 * std::abs(want));
    }
  }
}

}  // namespace

TEST_CASE("activations join the products and the pooling before them, and their gradients too") {
  for (const auto& [target, dtype] : testing::variants()) {
    const Layer layer(dtype);
    const Results wanted = run(layer, target, false);
    const Results got = run(layer, target, true);
    CHECK(got.dispatches + 3 <= wanted.dispatches);
    expect_same(got, wanted, Layer::bias_gradient);
  }
}

TEST_CASE("norms and windows take in what follows them") {
  for (const auto& [target, dtype] : testing::variants()) {
    const Block block(dtype);
    const Results wanted = run(block, target, false);
    const Results got = run(block, target, true);
    CHECK(got.dispatches + 3 == wanted.dispatches);  // the residual's addition, relu and sigmoid
    expect_same(got, wanted);
  }
}

TEST_CASE("norms take the moments that a product leaves only where they are of the same rows and channels") {
  const NormsOfOneProduct norms;
  for (const plan::Target& target : testing::targets()) {
    const Results wanted = run(norms, target, false), got = run(norms, target, true);
    CHECK(got.dispatches + 1 == wanted.dispatches);
    for (std::size_t i = 0; i < wanted.values.size(); ++i) {
      REQUIRE(got.values[i].size() == wanted.values[i].size());
      for (std::size_t j = 0; j < wanted.values[i].size(); ++j) {
        CHECK(std::abs(got.values[i][j] - wanted.values[i][j]) < 1e-4F);
      }
    }
  }
}

TEST_CASE("a norm in f32 takes tensors of another type without casts, and its weight in f32") {
  for (const auto& [target, dtype] : testing::variants()) {
    if (dtype == DType::f32) continue;
    const CastNorm norm(dtype);
    const Results wanted = run(norm, target, false);
    const Results got = run(norm, target, true);
    CHECK(got.dispatches + 4 <= wanted.dispatches);
    expect_same(got, wanted);
  }
}

TEST_CASE("what encodes coordinates stores the type of a product that follows") {
  for (const auto& [target, dtype] : testing::variants()) {
    const CastEncoding encoding(dtype);
    const Results wanted = run(encoding, target, false);
    const Results got = run(encoding, target, true);
    CHECK(got.dispatches + (dtype == DType::f32 ? 0 : 3) == wanted.dispatches);
    expect_same(got, wanted);
  }
}

TEST_CASE("what is added to a norm in f32 is rounded first where it was cast") {
  for (const auto& [target, dtype] : testing::variants()) {
    if (dtype == DType::f32) continue;
    const RoundedBesideNorm norm(dtype);
    expect_same(run(norm, target, true), run(norm, target, false));
  }
}

TEST_CASE("fused graphs give the same numbers in fewer dispatches") {
  std::size_t fused_dispatches = 0;
  std::size_t dispatches = 0;
  for (const plan::Target& target : testing::targets()) {
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      const DType dtype = seed % 2 == 0 ? DType::f32 : DType::f16;
      CAPTURE(seed);
      const RandomGraph graph(seed, dtype);
      const Results wanted = run(graph, target, false);
      const Results got = run(graph, target, true);
      dispatches += wanted.dispatches;
      fused_dispatches += got.dispatches;
      expect_same(got, wanted);
    }
  }
  CHECK(fused_dispatches * 10 < dispatches * 8);
}

TEST_CASE("fused graphs saturate, and round at random, where unfused ones do") {
  constexpr float largest = 65504;
  const plan::Target target = testing::targets().front();
  const Storing saturated{.overflow = Overflow::saturate, .most = 3000};
  const Storing at_random{.rounding = Rounding::stochastic};
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, DType::f16);
    for (const Storing& storing : {saturated, at_random}) {
      expect_same(run(graph, target, true, storing), run(graph, target, false, storing));
    }
  }
  const Layer layer(DType::f16);
  const Results most = run(layer, target, false, saturated);
  CHECK(has(most, largest));
  expect_same(run(layer, target, true, saturated), most, Layer::bias_gradient);
  const Results random = run(layer, target, false, at_random);
  CHECK(random.values != run(layer, target, false).values);
  expect_same(run(layer, target, true, at_random), random);
}
