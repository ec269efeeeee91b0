#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness/device.h"
#include "harness/values.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"
#include "passes/inference.h"
#include "passes/precision.h"
#include "passes/weight_nodes.h"
#include "reference/conv2d.h"
#include "train/stored_values.h"
#include "vk/device/notes.h"

namespace halfstep {
namespace {

using reference::Array;

/// A convolution with batch norm and a ReLU, as models have them.
struct Layer {
  Graph graph;
  Tensor images = graph.input("images", {2, 5, 7, 3});
  Tensor result = relu(models::batch_norm(
      graph.root() / "bn", models::conv(graph.root() / "conv", images, 6, 3, {.padding = {1, 1}}, models::Bias::none)));
};

/// Weights of a Layer that are far from the initial values.
struct LayerWeights {
  Array kernel = testing::rounded(testing::uniform({3, 3, 3, 6}, 1), DType::f32);
  Array weight = testing::rounded(testing::uniform({6}, 2, 0.5, 2), DType::f32);
  Array bias = testing::rounded(testing::uniform({6}, 3), DType::f32);
  Array mean = testing::rounded(testing::uniform({6}, 4), DType::f32);
  Array variance = testing::rounded(testing::uniform({6}, 5, 0.1, 3), DType::f32);

  void write(const std::filesystem::path& path) const {
    std::vector<std::vector<std::byte>> data;
    std::vector<io::StoredTensor> tensors;
    const auto add = [&](const char* name, const Array& array, const Axes& stored) {
      const std::vector<float> values(array.values.begin(), array.values.end());
      data.push_back(train::encode(DType::f32, array.shape, stored, values));
      tensors.push_back({name, "F32", train::stored_shape(array.shape, stored), data.back()});
    };
    data.reserve(5);
    add("conv.weight", kernel, {3, 2, 0, 1});
    add("bn.weight", weight, {});
    add("bn.bias", bias, {});
    add("bn.running_mean", mean, {});
    add("bn.running_var", variance, {});
    io::write_safetensors(path, tensors, {});
  }

  /// The result of a Layer on images, with the norm computed separately from the convolution.
  Array unfused(const Array& images) const {
    Array result = reference::conv2d(images, kernel, {.padding = {1, 1}});
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const std::size_t c = i % 6;
      const double normal = (result.values[i] - mean.values[c]) / std::sqrt(variance.values[c] + 1e-5);
      result.values[i] = std::max(0.0, normal * weight.values[c] + bias.values[c]);
    }
    return result;
  }
};

}  // namespace

TEST_CASE("a predictor's folded convolutions give what convolution and norm give apart") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "layer.safetensors";
  const LayerWeights weights;
  weights.write(path);
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    Layer layer;
    Predictor predictor = Predictor::compile(testing::device(), layer.graph, layer.result, precision);
    CHECK(predictor.load_weights(path).loaded.size() == 5);
    for (const std::uint64_t seed : {6U, 7U}) {
      const Array images = testing::rounded(testing::uniform(layer.images.shape(), seed), DType::f16);
      const std::vector<float> values(images.values.begin(), images.values.end());
      const std::vector<float> got = predictor.run({{"images", std::span<const float>(values)}});
      const Array want = weights.unfused(images);
      const double largest = *std::ranges::max_element(want.values);
      const double allowed = precision.parameters == DType::f16 ? 4 * 0x1p-11 * largest : 2e-6 * largest;
      REQUIRE(got.size() == want.values.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(std::abs(static_cast<double>(got[i]) - want.values[i]) <= allowed);
      }
    }
  }
}

TEST_CASE("a predictor of a part of a model loads the file of all of it, and no other model's") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "layer.safetensors";
  const LayerWeights weights;
  weights.write(path);
  const auto loaded = [&](const Layer& layer, Tensor output) {
    return Predictor::compile(testing::device(), layer.graph, output).load_weights(path);
  };
  Layer part;  // the norm is for another output
  const Tensor convolved = models::conv(part.graph.root() / "other", part.images, 6, 3, {}, models::Bias::none);
  CHECK_THROWS_WITH_AS(loaded(part, convolved), doctest::Contains("1 missing (other.weight)"), Error);
  const Tensor weight_only = scale(part.result, 2);
  CHECK(loaded(part, weight_only).loaded.size() == 5);
  Graph graph;
  const Tensor images = graph.input("images", {2, 5, 7, 3});
  const Tensor result = models::conv(graph.root() / "conv", images, 6, 3, {.padding = {1, 1}}, models::Bias::none);
  CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), graph, result).load_weights(path),
                       doctest::Contains("4 unexpected"), Error);
  models::batch_norm(graph.root() / "bn", result);
  const LoadReport report = Predictor::compile(testing::device(), graph, result).load_weights(path);
  CHECK(report.loaded == std::vector<std::string>{"conv.weight"});
  CHECK(report.unexpected.empty());
}

TEST_CASE("what follows from weights alone is computed when they are loaded, and the norm is gone from the rest") {
  const Layer layer;
  const passes::LoweredPrecision lowered = passes::for_inference(
      passes::apply_precision(layer.graph.ir(), Precision::float32()), [](const graph::Node&) { return true; });
  const graph::ValueId wanted[] = {lowered.value.at(layer.result.id())};
  const passes::WeightSplit split = passes::split_at_weights(lowered.ir, DType::f32, wanted);
  const auto has = [](const graph::Ir& ir, std::string_view op) {
    return std::ranges::any_of(ir.nodes, [&](const graph::Node& node) { return node.op->name() == op; });
  };
  CHECK(has(split.weights, "batch_norm_affine"));
  CHECK(has(split.weights, "mul"));
  CHECK(!has(split.weights, "conv2d"));
  CHECK(has(split.rest, "conv2d"));
  for (const char* op : {"batch_norm", "batch_norm_affine", "mul"}) CHECK(!has(split.rest, op));
  for (const graph::Ir* ir : {&split.weights, &split.rest}) {
    for (std::size_t i = 0; i < ir->nodes.size(); ++i) {
      for (const graph::ValueId output : ir->nodes[i].outputs) CHECK(ir->values[output].producer == i);
    }
  }
}

TEST_CASE("a predictor says what it is not given") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "layer.safetensors";
  LayerWeights().write(path);
  Layer layer;
  Predictor predictor = Predictor::compile(testing::device(), layer.graph, layer.result);
  const std::vector<float> values(2 * 5 * 7 * 3);
  const std::span<const float> images(values);
  CHECK_THROWS_WITH_AS(predictor.run({{"images", images}}), doctest::Contains("expected weights"), Error);
  predictor.load_weights(path);
  CHECK_THROWS_WITH_AS(predictor.run({}), doctest::Contains("expected values for 1 inputs, got 0"), Error);
  CHECK_THROWS_WITH_AS(predictor.run({{"other", images}}), doctest::Contains("'images'"), Error);
  CHECK_THROWS_WITH_AS(predictor.run({{"images", images.first(9)}}), doctest::Contains("210 values"), Error);
  const std::vector<std::uint32_t> words(values.size());
  CHECK_THROWS_AS(predictor.run({{"images", std::span<const std::uint32_t>(words)}}), Error);
  Graph other;
  const Tensor x = other.input("x", {2, 3});
  Predictor dense = Predictor::compile(testing::device(), other, models::dense(other.root() / "dense", x, 4));
  CHECK_THROWS_WITH_AS(dense.load_weights(path), doctest::Contains("dense.weight"), Error);
  const Tensor ids = reshape(other.input("ids", {6}, DType::u32), {3, 2});
  CHECK_THROWS_WITH_AS(Predictor::compile(testing::device(), other, ids),
                       "[predictor] expected an output of floating numbers, got u32 {3, 2}", Error);
  Precision precision;
  const auto compile = [&] { return Predictor::compile(testing::device(), layer.graph, layer.result, precision); };
  precision.overflow = Overflow::saturate;
  CHECK_THROWS_WITH_AS(compile(), doctest::Contains("with saturation, got none"), Error);
  precision = Precision::mixed();
  precision.stop_on.invalid = true;
  CHECK_THROWS_WITH_AS(compile(), doctest::Contains("[predictor] expected a precision without stop_on"), Error);
}

namespace {

/// What a predictor with weights of its own, a parameter w, makes of x and w, in each run.
std::vector<float> computed(const Precision& precision, const std::function<Tensor(Tensor, Tensor)>& operation,
                            const Array& x, const Array& w) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  const std::vector<float> weights(w.values.begin(), w.values.end());
  io::write_safetensors(path, {{"w", "F32", w.shape, std::as_bytes(std::span(weights))}}, {});
  Graph graph;
  const Tensor input = graph.input("x", x.shape);
  const Tensor result = operation(input, graph.root().parameter("w", w.shape, constant(0)));
  Predictor predictor = Predictor::compile(testing::device(), graph, result, precision);
  predictor.load_weights(path);
  const std::vector<float> values(x.values.begin(), x.values.end());
  const std::vector<float> first = predictor.run({{"x", std::span<const float>(values)}});
  CHECK(predictor.run({{"x", std::span<const float>(values)}}) == first);
  return first;
}

}  // namespace

TEST_CASE("a predictor with weights of its own honours what a precision says of the forward pass") {
  const auto product = [](Tensor x, Tensor w) { return mul(x, w); };
  const auto changed = [](const std::function<void(Precision&)>& change) {
    Precision precision = Precision::mixed();
    change(precision);
    return precision;
  };
  const Array large({4, 64}, 300);
  const auto squares = [&](const std::function<void(Precision&)>& change) {
    return computed(changed(change), product, large, large);
  };
  const std::vector<float> infinite(256, std::numeric_limits<float>::infinity());
  CHECK(squares([](Precision&) {}) == infinite);
  CHECK(squares([](Precision& p) { p.gradient_scales = GradientScales::per_tensor; }) == infinite);
  CHECK(squares([](Precision& p) { p.overflow = Overflow::saturate; }) == std::vector<float>(256, 65504.0F));
  CHECK(squares([](Precision& p) { p.operators["mul"] = DType::f32; }) == std::vector<float>(256, 90000.0F));

  // Its square is 1 + 46.5 2^-10, nearly.
  const Array between({4, 64}, 1 + 23 * 0x1p-10);
  const auto rounded = [&](Rounding rounding) {
    const Precision precision = changed([&](Precision& p) { p.rounding.activations = rounding; });
    const std::vector<float> all = computed(precision, product, between, between);
    return std::set<float>(all.begin(), all.end());
  };
  CHECK(rounded(Rounding::nearest) == std::set<float>{1 + 47 * 0x1p-10F});
  CHECK(rounded(Rounding::stochastic) == std::set<float>{1 + 46 * 0x1p-10F, 1 + 47 * 0x1p-10F});

  const auto sums = [&](DType partials) {
    const auto multiplied = [](Tensor x, Tensor w) { return matmul(x, w); };
    return computed(changed([&](Precision& p) { p.partials.matmul = partials; }), multiplied,
                    testing::rounded(testing::uniform({4, 8192}, 1, 0, 1), DType::f16),
                    testing::rounded(testing::uniform({8192, 8}, 2, 0, 1), DType::f16));
  };
  CHECK(sums(DType::f16) != sums(DType::f32));
}

namespace {

/// Dense layers a to d with norms in between, trained from random weights.
struct Layers {
  Graph graph;
  Tensor x = graph.input("x", {4, 6});
  Tensor labels = graph.input("labels", {4}, DType::u32);
  Tensor logits;

  Layers() {
    const auto layer = [&](const char* name, Tensor in, std::int64_t out) {
      const Scope scope = graph.root() / name;
      return linear(in, scope.parameter("weight", {in.shape().back(), out}, normal(0.5F)),
                    scope.parameter("bias", {out}, uniform(-1, 1)));
    };
    const auto affine = [&](const char* name) {
      const Scope scope = graph.root() / name;
      return std::pair{scope.parameter("weight", {20}, uniform(0.5F, 1.5F)),
                       scope.parameter("bias", {20}, uniform(-1, 1))};
    };
    Tensor h = layer("c", tanh(layer("b", relu(layer("a", x, 40)), 24)), 20);
    const auto [weight, bias] = affine("batch");
    const Scope batch = graph.root() / "batch";
    h = batch_norm(h, weight, bias, {batch.state("mean", {20}, constant(0.1F)), batch.state("var", {20}, constant(1))});
    const auto [row_weight, row_bias] = affine("row");
    logits = layer("d", layer_norm(h, row_weight, row_bias), 3);
  }

  /// What predictors over a trainer, and with the trainer's weights from a file, make of the same numbers.
  std::pair<std::vector<float>, std::vector<float>> predicted(const Precision& precision) const {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "layers.safetensors";
    Trainer trainer =
        Trainer::compile(testing::device(), graph, {.loss = cross_entropy(logits, labels), .precision = precision});
    trainer.save_weights(path);
    const Array numbers = testing::uniform(x.shape(), 1);
    const std::vector<float> values(numbers.values.begin(), numbers.values.end());
    const std::map<std::string, Values> inputs{{"x", std::span<const float>(values)}};
    Predictor over = Predictor::compile(trainer, graph, logits);
    Predictor own = Predictor::compile(testing::device(), graph, logits, precision);
    own.load_weights(path);
    return {over.run(inputs), own.run(inputs)};
  }
};

}  // namespace

TEST_CASE("a predictor computes from a file what one over the trainer does, in every precision and in mixed types") {
  std::vector<Precision> precisions;
  for (const std::string& name : Precision::names()) precisions.push_back(Precision::level(name));
  const auto mix = [&](Precision precision, std::initializer_list<std::pair<const char*, DType>> layers) {
    for (const auto& [layer, dtype] : layers) precision.name += fmt::format(" {} {}", layer, name(dtype));
    for (const auto& [layer, dtype] : layers) precision.layer(layer, dtype);
    precisions.push_back(std::move(precision));
  };
  mix(Precision::float32(), {{"a", DType::f16}, {"b", DType::bf16}});
  mix(Precision::autocast(), {{"c", DType::bf16}});
  mix(Precision::mixed(), {{"a", DType::f32}, {"b", DType::bf16}});
  mix(Precision::mixed(), {{"c", DType::bf16}, {"d", DType::f32}});
  mix(Precision::bfloat16(), {{"a", DType::f16}, {"d", DType::f16}});
  for (const Precision& precision : precisions) {
    CAPTURE(precision.name);
    const auto [over, own] = Layers().predicted(precision);
    CHECK(own == over);
  }
}

TEST_CASE("a predictor of what depends on weights or states alone computes it") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights.safetensors";
  const std::vector<float> weights{0, 0.5F, -1, 2, 3, -4};
  const std::vector<float> state{3, 7};
  io::write_safetensors(
      path,
      {{"w", "F32", {2, 3}, std::as_bytes(std::span(weights))}, {"s", "F32", {2}, std::as_bytes(std::span(state))}},
      {});
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::autocast()}) {
    CAPTURE(precision.name);
    const auto predicted = [&](const std::function<Tensor(Tensor, Tensor)>& output) {
      Graph graph;
      const Tensor w = graph.root().parameter("w", {2, 3}, constant(0));
      const Tensor s = graph.root().state("s", {2}, constant(0));
      Predictor predictor = Predictor::compile(testing::device(), graph, output(w, s), precision);
      predictor.load_weights(path);
      return predictor.run({});
    };
    CHECK(predicted([](Tensor w, Tensor) { return w; }) == weights);
    CHECK(predicted([](Tensor, Tensor s) { return s; }) == state);
    CHECK(predicted([](Tensor w, Tensor) { return mul(w, w); }) == std::vector<float>{0, 0.25F, 1, 4, 9, 16});
    CHECK(predicted([](Tensor w, Tensor) { return scale(sum(mul(w, w)), 2); }) == std::vector<float>{60.5F});
  }
}

TEST_CASE("a state that a file lacks has what training begins with, whatever else the output reads") {
  const TemporaryFolder folder;
  const std::vector<float> weight{1};
  io::write_safetensors(folder.path() / "w", {{"w", "F32", {1}, std::as_bytes(std::span(weight))}}, {});
  Graph graph;
  const Tensor other = graph.root().state("other", {5}, normal(1));
  const Tensor state = graph.root().state("state", {5}, normal(1));
  const Tensor w = graph.root().parameter("w", {1}, constant(1));
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = sum(mul(w, add(state, other))), .optimizer = Sgd{}, .seed = 0});
  Predictor predictor = Predictor::compile(testing::device(), graph, mul(state, w));
  predictor.load_weights(folder.path() / "w", {.strict = false});
  CHECK(predictor.run({}) == trainer.parameter("state"));
}

TEST_CASE("a checkpoint says which model wrote it and what that is fed, and a predictor computes what it learned") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "dense.safetensors";
  Dataset set{.name = "bytes", .sample_shape = {2, 3, 1}, .count = 4, .classes = 2};
  for (int i = 0; i < 24; ++i) set.samples.push_back(static_cast<std::uint8_t>(37 * i % 256));
  set.labels = {0, 1, 1, 0};
  Graph graph;
  const Tensor images = graph.input("images", {4, 2, 3, 1});
  const Tensor labels = graph.input("labels", {4}, DType::u32);
  const Tensor logits = models::dense(graph.root() / "dense", flatten(images), 2);
  Trainer trainer =
      Trainer::compile(testing::device(), graph,
                       {.loss = cross_entropy(logits, labels),
                        .optimizer = RmsProp{},
                        .precision = Precision::float32(),
                        .model = "dense",
                        .classes = {"\"odd\", even", "\xFFprime"},
                        .feed = Feed{.samples = images, .labels = labels, .mean = {0.25F}, .stddev = {0.5F}},
                        .training_set = &set});
  for (int i = 0; i < 5; ++i) trainer.step();
  trainer.save(path);
  const auto metadata = summarize_checkpoint(path).metadata;
  CHECK(metadata.at("model") == "dense");
  CHECK(metadata.at("classes") == "[\"\\\"odd\\\", even\",\"\xEF\xBF\xBDprime\"]");  // no UTF-8: replaced
  CHECK(metadata.at("input") == "2x3x1");
  CHECK(metadata.at("mean") == "0.25");
  CHECK(metadata.at("deviation") == "0.5");
  CHECK(metadata.at("step") == "5");
  Predictor predictor = Predictor::compile(testing::device(), graph, cross_entropy(logits, labels));
  predictor.load_weights(path);
  std::vector<float> values;
  for (const std::uint8_t byte : set.samples) values.push_back((static_cast<float>(byte) / 255 - 0.25F) / 0.5F);
  const std::vector<float> loss = predictor.run(
      {{"images", std::span<const float>(values)}, {"labels", std::span<const std::uint32_t>(set.labels)}});
  CHECK(static_cast<double>(loss.front()) == doctest::Approx(trainer.evaluate(set).loss).epsilon(1e-6));
}

TEST_CASE("the kernels of a predictor are checked on its device, as a trainer's are") {
  const TemporaryFolder folder;
  const Device device = Device::open("", {.tuning = Tuning::force, .cache_folder = folder.path()});
  Graph graph;
  const Tensor y = matmul(graph.input("x", {64, 33}), graph.input("weight", {33, 19}));
  const Predictor predictor = Predictor::compile(device, graph, y);
  std::ifstream notes(vk::device_file("notes", vk::context_of(device).capabilities(), folder.path()));
  const std::string noted{std::istreambuf_iterator<char>(notes), {}};
  CHECK(noted.find("gemm row_row f32 f32 by ") != std::string::npos);
  CHECK(noted.find("\tright") != std::string::npos);
}

}  // namespace halfstep
