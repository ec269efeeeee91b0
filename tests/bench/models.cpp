#include "bench/models.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "models/bert.h"
#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/gpt.h"
#include "models/layers.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/resnet_cifar.h"

namespace bench {
namespace {

using namespace halfstep;

constexpr std::int64_t hidden_units = 128;
constexpr std::uint32_t classes = 10;
constexpr std::int64_t text_length = 128;
constexpr std::uint32_t text_vocabulary = 8000;
constexpr std::int64_t block = 64;  // of nanoGPT's settings for a CPU, as its other sizes
constexpr std::uint32_t characters = 65;

const Shape grey{28, 28, 1};
const Shape colour{32, 32, 3};
const Shape photo{224, 224, 3};

Tensor mlp(const Scope& scope, Tensor images, std::int64_t layers) {
  const std::vector<std::int64_t> hidden(static_cast<std::size_t>(layers - 1), hidden_units);
  return halfstep::models::mlp(scope, images, hidden);
}

Tensor fashion_cnn(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::fashion_cnn(scope, images);
}

Tensor fashion_conv(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::fashion_conv(scope, images);
}

Tensor lenet5(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::lenet5(scope, images);
}

/// `count` random images.
Dataset random_images(const Shape& image, std::int64_t count) {
  Dataset set{.name = "random", .sample_shape = image, .count = count, .classes = classes};
  std::mt19937 generator(1);
  set.samples.resize(static_cast<std::size_t>(count * set.sample_bytes()));
  for (std::uint8_t& byte : set.samples) byte = static_cast<std::uint8_t>(generator());
  for (std::int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::uint32_t>(generator() % classes));
  return set;
}

Model image_classifier(const Shape& image,
                       std::function<Tensor(const Scope&, Tensor images, std::int64_t layers)> logits_of) {
  const auto build = [image, logits_of = std::move(logits_of)](Graph& graph, std::int64_t batch, std::int64_t layers) {
    const Tensor images = graph.input("images", {batch, image[0], image[1], image[2]});
    const Tensor labels = graph.input("labels", {batch}, DType::u32);
    const Tensor logits = logits_of(graph.root(), images, layers);
    return Training{.loss = cross_entropy(logits, labels),
                    .metrics = {{"accuracy", accuracy(logits, labels)}},
                    .feed = {.samples = images, .labels = labels}};
  };
  return {build, [image](std::int64_t count) { return random_images(image, count); }};
}

/// A network for images of CIFAR: "resnet" and its depth, 6N + 2. None for another name, and for resnet50, which is of
/// larger images.
std::optional<Model> resnet_of(std::string_view name) {
  constexpr std::string_view start = "resnet";
  if (!name.starts_with(start)) return std::nullopt;
  const std::string_view digits = name.substr(start.size());
  std::int64_t depth = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), depth);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (depth < 8 || depth > halfstep::models::deepest_resnet_cifar || depth % 6 != 2) return std::nullopt;
  return image_classifier(colour, [depth](const Scope& scope, Tensor images, std::int64_t /*layers*/) {
    return halfstep::models::resnet_cifar(scope, images, depth);
  });
}

template <std::int64_t layers, std::int64_t width>
Training text_classifier(Graph& graph, std::int64_t batch, std::int64_t /*layers*/) {
  const Tensor tokens = graph.input("tokens", {batch, text_length}, DType::u32);
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = halfstep::models::bert_classifier(
      graph.root(), {.tokens = tokens}, 2,
      {.layers = layers, .heads = width / 64, .width = width, .hidden = 4 * width, .vocabulary = text_vocabulary});
  return {.loss = cross_entropy(logits, labels),
          .metrics = {{"accuracy", accuracy(logits, labels)}},
          .feed = {.inputs = {{.input = tokens}, {.input = labels}}}};
}

Training character_gpt(Graph& graph, std::int64_t batch, std::int64_t /*layers*/) {
  const Tensor tokens = graph.input("tokens", {batch, block}, DType::u32);
  const Tensor next = graph.input("next", {batch, block}, DType::u32);
  const Tensor logits = halfstep::models::gpt(
      graph.root(), tokens,
      {.layers = 4, .heads = 4, .width = 128, .positions = block, .vocabulary = characters, .dropout = 0});
  return {.loss = cross_entropy(reshape(logits, {-1, characters}), reshape(next, {-1})),
          .metrics = {},
          .feed = {.inputs = {{.input = tokens}, {.input = next}}}};
}

/// The network of bin/image_fit, of any width.
template <std::int64_t width>
Training image_fit(Graph& graph, std::int64_t batch, std::int64_t /*layers*/) {
  const Tensor positions = graph.input("positions", {batch, 2});
  const Tensor colours = graph.input("colours", {batch, 3});
  const Scope scope = graph.root();
  const Tensor x = halfstep::models::hash_grid(scope / "grid", positions, {.log2_hashmap_size = 15});
  using halfstep::models::Before;
  const Tensor y = fused_mlp(x, {halfstep::models::dense_layer(scope / "hidden1", x.dim(-1), width, Before::relu),
                                 halfstep::models::dense_layer(scope / "hidden2", width, width, Before::relu),
                                 halfstep::models::dense_layer(scope / "colours", width, 3)});
  return {.loss = mse_loss(y, colours), .metrics = {}, .feed = {.inputs = {{.input = positions}, {.input = colours}}}};
}

/// The mean of an operator's results, and the gradients of its input and weights.
template <Tensor (*result_of)(const Scope&, Tensor)>
Training large_operator(Graph& graph, const Shape& shape) {
  const Tensor x = graph.root().parameter("x", shape, constant(1));  // so that it has a gradient
  return {.loss = mean(result_of(graph.root(), x)), .metrics = {}, .feed = {}};
}

Tensor product_of(const Scope& scope, Tensor x) {
  return linear(x, scope.parameter("weight", {4096, 4096}, constant(1)));
}

Tensor convolution_of(const Scope& scope, Tensor x) {
  return halfstep::models::conv(scope, x, 128, 3, {.padding = {1, 1}}, halfstep::models::Bias::none);
}

Tensor movement_of(const Scope& /*scope*/, Tensor x) {
  return gelu(layer_norm(relu(x)));
}

Training product(Graph& graph, std::int64_t /*batch*/, std::int64_t /*layers*/) {
  return large_operator<product_of>(graph, {4096, 4096});
}

Training convolution(Graph& graph, std::int64_t batch, std::int64_t /*layers*/) {
  return large_operator<convolution_of>(graph, {batch, 28, 28, 128});
}

Training movement(Graph& graph, std::int64_t /*batch*/, std::int64_t /*layers*/) {
  return large_operator<movement_of>(graph, {16384, 1024});
}

Tensor resnet50(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::resnet(scope, images, 50);
}

Tensor mobilenet_v2(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::mobilenet_v2(scope, images);
}

/// `count` random numbers below `limit`.
std::vector<std::uint32_t> random_tokens(std::int64_t count, std::uint32_t limit) {
  std::mt19937 generator(1);
  std::vector<std::uint32_t> tokens(static_cast<std::size_t>(count));
  for (std::uint32_t& token : tokens) token = static_cast<std::uint32_t>(generator() % limit);
  return tokens;
}

Dataset random_texts(std::int64_t count) {
  return Dataset::of("random", {Field::own("tokens", {text_length}, random_tokens(count * text_length, text_vocabulary),
                                           text_vocabulary),
                                Field::own("labels", {}, random_tokens(count, 2), 2)});
}

Dataset random_characters(std::int64_t count) {
  const std::vector<std::uint32_t> tokens = random_tokens(count * block, characters);
  return Dataset::of(
      "random", {Field::own("tokens", {block}, tokens, characters), Field::own("next", {block}, tokens, characters)});
}

const std::map<std::string, Model>& models() {
  static const std::map<std::string, Model> all{
      {"bert_base", {text_classifier<12, 768>, nullptr}},
      {"bert_mini", {text_classifier<4, 256>, random_texts}},
      {"bert_tiny", {text_classifier<2, 128>, random_texts}},
      {"convolution", {convolution, nullptr}},
      {"fashion_cnn", image_classifier(grey, fashion_cnn)},
      {"fashion_conv", image_classifier(grey, fashion_conv)},
      {"gpt", {character_gpt, random_characters}},
      {"image_fit", {image_fit<64>, nullptr}},
      {"image_fit_16", {image_fit<16>, nullptr}},
      {"image_fit_32", {image_fit<32>, nullptr}},
      {"image_fit_128", {image_fit<128>, nullptr}},
      {"lenet5", image_classifier(grey, lenet5)},
      {"mlp", image_classifier(grey, mlp)},
      {"mobilenet_v2", {image_classifier(photo, mobilenet_v2).build, nullptr}},
      {"movement", {movement, nullptr}},
      {"product", {product, nullptr}},
      {"resnet50", {image_classifier(photo, resnet50).build, nullptr}}};
  return all;
}

std::optional<Model> find_model(const std::string& name) {
  const auto found = models().find(name);
  return found != models().end() ? std::optional(found->second) : resnet_of(name);
}

/// The names of those that are trained, or of all.
std::string names(bool trained) {
  std::string text;
  for (const auto& [name, model] : models()) {
    if (model.set || !trained) text += name + ", ";
  }
  return text + "resnet8, resnet14, resnet20, ...";
}

CLI::Validator name_of_model(bool trained) {
  const auto check = [trained](const std::string& name) {
    const std::optional<Model> model = find_model(name);
    return model && (model->set || !trained) ? "" : fmt::format("expected {}, got '{}'", names(trained), name);
  };
  return {check, "{" + names(trained) + "}"};
}

}  // namespace

Model model_of(const std::string& name) {
  std::optional<Model> model = find_model(name);
  if (!model) fail("bench", fmt::format("expected {}, got '{}'", names(false), name));
  return *std::move(model);
}

CLI::Validator trained_model() {
  return name_of_model(true);
}

CLI::Validator any_model() {
  return name_of_model(false);
}

}  // namespace bench
