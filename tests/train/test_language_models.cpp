// Compares the language models with Hugging Face's: tests/reference/make_language_parity.py generated the numbers.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/bert.h"
#include "models/gpt.h"
#include "train/parity.h"
#include "train/stored_values.h"

namespace halfstep {
namespace {

using testing::Json;

constexpr std::int64_t batch = 3;
constexpr std::int64_t length = 10;
constexpr std::int64_t vocabulary = 37;

/// The initial values of a parameter, in PyTorch's order.
std::vector<float> first_values(const std::string& name, const Shape& shape) {
  if (shape.size() == 2) return testing::uniform(name, shape, -0.3, 0.3);
  const bool norm = name.find("ln_") != std::string::npos || name.find("LayerNorm") != std::string::npos;
  if (norm && name.ends_with("weight")) return testing::uniform(name, shape, 0.5, 1.5);
  return testing::uniform(name, shape, -0.25, 0.25);
}

std::vector<std::uint32_t> integers(std::string_view name, std::int64_t count, std::uint64_t below) {
  std::vector<std::uint32_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::uint32_t>(testing::word(name, static_cast<std::uint64_t>(i)) % below));
  }
  return values;
}

/// A model's step, and the u32 inputs that it has by name.
struct Step {
  Graph graph;
  Tensor logits;
  Tensor loss;
  std::map<graph::ValueId, std::vector<std::uint32_t>> inputs;

  Tensor input(std::string_view name, const Shape& shape, std::vector<std::uint32_t> values) {
    const Tensor tensor = graph.input(name, shape, DType::u32);
    inputs[tensor.id()] = std::move(values);
    return tensor;
  }
  Tensor drawn(std::string_view name, const Shape& shape, std::uint64_t below) {
    return input(name, shape, integers(name, elements(shape), below));
  }
};

Step gpt() {
  Step step;
  const Tensor tokens = step.drawn("tokens", {batch, length}, vocabulary);
  step.logits =
      models::gpt(step.graph.root(), tokens,
                  {.layers = 2, .heads = 3, .width = 24, .positions = 12, .vocabulary = vocabulary, .dropout = 0});
  const Tensor labels = step.drawn("labels", {batch, length}, vocabulary);
  step.loss = cross_entropy(reshape(step.logits, {batch * length, vocabulary}), reshape(labels, {batch * length}));
  return step;
}

Step bert() {
  Step step;
  std::vector<std::uint32_t> ids = integers("tokens", batch * length, vocabulary - 1);
  for (std::uint32_t& id : ids) ++id;  // Hugging Face's model gives token 0, the padding, no gradient
  const Tensor tokens = step.input("tokens", {batch, length}, std::move(ids));
  const Tensor types = step.drawn("types", {batch, length}, 2);
  const Tensor lengths = step.input("lengths", {batch}, {10, 4, 7});
  step.logits = models::bert_classifier(
      step.graph.root(), {.tokens = tokens, .lengths = lengths, .types = types}, 4,
      {.layers = 2, .heads = 3, .width = 24, .hidden = 40, .positions = 12, .vocabulary = vocabulary, .dropout = 0});
  step.loss = cross_entropy(step.logits, step.drawn("labels", {batch}, 4));
  return step;
}

/// What is allowed to differ, in parts of a norm. A bias of keys adds the same to all scores of a query: its gradient
/// is 0, but for rounding, and is held against the largest gradient.
struct Allowed {
  double result;
  double gradient;
};

/// The loss, logits and gradients of one step, against those in double.
void check_step(const Step& model, const Json& wanted, const Precision& precision, Allowed allowed) {
  const float scale = precision.loss_scale.kind == LossScale::Kind::none ? 1 : 1024;
  testing::OneStep step(model.graph, model.loss, model.logits, precision);
  step::Execution& execution = step.execution;
  for (const auto& [id, values] : model.inputs) execution.set(step.lowered.value[id], values);
  execution.set(step.seed, std::vector<float>{scale});
  for (const graph::ValueId id : step.parameters) {
    const graph::Value& value = step.value(id);
    const std::string name = train::stored_name(value.name);
    const Shape theirs = train::stored_shape(value.type.shape, value.stored);
    const std::vector<float> values = first_values(name, theirs);
    execution.set(
        id, train::decode({name, "F32", theirs, std::as_bytes(std::span(values))}, value.type.shape, value.stored));
  }
  execution.run();
  CHECK(execution.floats(step.loss)[0] == doctest::Approx(wanted.at("loss").get<double>()).epsilon(allowed.result));
  const double norm = wanted.at("logits").at("norm");
  CHECK(testing::distance("logits", execution.floats(step.logits), wanted.at("logits")) <= allowed.result * norm);
  double largest = 0;
  for (const Json& digest : wanted.at("gradients")) largest = std::max(largest, digest.at("norm").get<double>());
  CHECK(wanted.at("gradients").size() == step.parameters.size());
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    const graph::Value& value = step.value(step.parameters[i]);
    const std::string name = train::stored_name(value.name);
    CAPTURE(name);
    std::vector<float> found = execution.floats(step.gradients[i]);
    for (float& element : found) element /= scale;
    const Json& digest = wanted.at("gradients").at(name);
    const double unit = std::max(digest.at("norm").get<double>(), 1e-2 * largest);
    CHECK(testing::distance(name, testing::in_their_order(found, value.type.shape, value.stored), digest) <=
          allowed.gradient * unit);
  }
}

/// Ten steps of AdamW, from weights that are read from a file with Hugging Face's names, and written to another.
void check_training(const Step& model, const Json& wanted) {
  const TemporaryFolder folder;
  std::vector<std::vector<float>> data;
  std::vector<io::StoredTensor> tensors;
  std::vector<graph::Value> parameters;
  for (const graph::ValueId id : model.graph.ir().of(graph::Origin::parameter)) {
    const graph::Value& value = parameters.emplace_back(model.graph.ir().values[id]);
    const std::string name = train::stored_name(value.name);
    const Shape shape = train::stored_shape(value.type.shape, value.stored);
    data.push_back(first_values(name, shape));
    tensors.push_back({name, "F32", shape, std::as_bytes(std::span(data.back()))});
  }
  io::write_safetensors(folder.path() / "theirs.safetensors", tensors, {});
  Trainer trainer = Trainer::compile(testing::device(), model.graph,
                                     {.loss = model.loss,
                                      .optimizer = AdamW{.rate = wanted.at("rate").get<float>(),
                                                         .epsilon = wanted.at("epsilon").get<float>(),
                                                         .weight_decay = wanted.at("decay").get<float>()},
                                      .precision = Precision::float32()});
  CHECK(trainer.load_weights(folder.path() / "theirs.safetensors").loaded.size() == tensors.size());
  trainer.save_weights(folder.path() / "ours.safetensors");
  const io::SafetensorsFile ours(folder.path() / "ours.safetensors");
  for (const io::StoredTensor& tensor : tensors) {
    CAPTURE(tensor.name);
    const io::StoredTensor* saved = ours.find(tensor.name);
    REQUIRE(saved != nullptr);
    CHECK(saved->shape == tensor.shape);
    CHECK(std::ranges::equal(saved->data, tensor.data));
  }
  std::map<std::string, Values> inputs;
  for (const auto& [id, values] : model.inputs) {
    inputs.emplace(model.graph.ir().values[id].name, std::span<const std::uint32_t>(values));
  }
  for (std::size_t step = 0; step < wanted.at("losses").size(); ++step) {
    trainer.step(inputs);
    trainer.finish();
    CAPTURE(step);
    CHECK(trainer.report().loss == doctest::Approx(wanted.at("losses")[step].get<double>()).epsilon(1e-3));
  }
  for (const graph::Value& value : parameters) {
    const std::string name = train::stored_name(value.name);
    CAPTURE(name);
    const Json& digest = wanted.at("last").at(name);
    CHECK(testing::distance(name,
                            testing::in_their_order(trainer.parameter(value.name), value.type.shape, value.stored),
                            digest) <= 1e-3 * digest.at("norm").get<double>());
  }
}

void check_model(const Step& model, const std::string& file) {
  const Json wanted = testing::read_parity(file);
  check_step(model, wanted, Precision::float32(), {.result = 1e-5, .gradient = 1e-5});
  check_step(model, wanted, Precision::mixed(), {.result = 2e-2, .gradient = 2e-2});
  check_training(model, wanted);
}

std::vector<std::string> names_and_shapes(const Graph& graph) {
  std::vector<std::string> tensors;
  for (const graph::ValueId id : graph.ir().of(graph::Origin::parameter)) {
    const graph::Value& value = graph.ir().values[id];
    const Shape shape = train::stored_shape(value.type.shape, value.stored);
    tensors.push_back(fmt::format("{} {}", train::stored_name(value.name), fmt::join(shape, "x")));
  }
  std::ranges::sort(tensors);
  return tensors;
}

std::vector<std::string> wanted_tensors(const std::string& file) {
  auto tensors = testing::read_parity(file).at("tensors").get<std::vector<std::string>>();
  std::ranges::sort(tensors);
  return tensors;
}

}  // namespace

TEST_CASE("GPT-2 is Hugging Face's, in one step and in ten") {
  check_model(gpt(), "parity_gpt.json");
}

TEST_CASE("BERT is Hugging Face's, in one step and in ten, with padding and two types of tokens") {
  check_model(bert(), "parity_bert.json");
}

TEST_CASE("GPT-2 and BERT have Hugging Face's names and shapes") {
  Graph gpt;
  models::gpt(gpt.root(), gpt.input("tokens", {1, 8}, DType::u32));
  CHECK(names_and_shapes(gpt) == wanted_tensors("parity_gpt.json"));
  Graph bert;
  const Tensor encoded = models::bert(bert.root(), {.tokens = bert.input("tokens", {1, 8}, DType::u32)});
  models::bert_pooler(bert.root(), encoded);
  CHECK(names_and_shapes(bert) == wanted_tensors("parity_bert.json"));
}

TEST_CASE("language models say what they cannot take") {
  Graph graph;
  const Tensor tokens = graph.input("tokens", {1, 8}, DType::u32);
  CHECK_THROWS_WITH_AS(models::gpt(graph.root() / "a", tokens, {.layers = 1, .positions = 7}),
                       "[gpt] expected at most 7 positions, got 8", Error);
  CHECK_THROWS_WITH_AS(models::bert(graph.root() / "b", {.tokens = tokens}, {.layers = 1, .positions = 7}),
                       "[bert] expected at most 7 positions, got 8", Error);
  CHECK_THROWS_WITH_AS(models::gpt(graph.root() / "c", tokens, {.layers = 1, .heads = 5}),
                       "[attention] expected a width that is a multiple of the heads, got 768 and 5 heads", Error);
  for (const std::int64_t layers : {0, -1}) {
    CHECK_THROWS_WITH_AS(models::gpt(graph.root() / "d" / std::to_string(layers), tokens, {.layers = layers}),
                         doctest::Contains("[gpt] expected 1 layer or more, got"), Error);
    CHECK_THROWS_WITH_AS(models::bert(graph.root() / "e", {.tokens = tokens}, {.layers = layers}),
                         doctest::Contains("[bert] expected 1 layer or more, got"), Error);
  }
}

}  // namespace halfstep
