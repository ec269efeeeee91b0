// Compares networks with PyTorch's: tests/reference/make_parity.py generated the numbers, and documents how.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/resnet_cifar.h"
#include "train/parity.h"
#include "train/stored_values.h"

namespace halfstep {
namespace {

using testing::distance;
using testing::Json;
using testing::uniform;
using testing::word;

/// The initial values of a tensor, in PyTorch's order.
std::vector<float> first_values(const std::string& name, const Shape& shape) {
  if (shape.size() == 4) {
    const double bound = std::sqrt(6.0 / static_cast<double>(shape[1] * shape[2] * shape[3]));
    return uniform(name, shape, -bound, bound);
  }
  if (shape.size() == 2) {
    const double bound = 1 / std::sqrt(static_cast<double>(shape[1]));
    return uniform(name, shape, -bound, bound);
  }
  if (name.ends_with("bn2.weight")) return uniform(name, shape, 0.02, 0.1);
  if (name.starts_with("features") && name.find("running") == std::string::npos) {
    return name.ends_with("weight") ? uniform(name, shape, 0.3, 0.7) : uniform(name, shape, 1, 5);
  }
  if (name.ends_with("weight") || name.ends_with("running_var")) return uniform(name, shape, 0.5, 1.5);
  return uniform(name, shape, -0.25, 0.25);
}

using Model = std::function<Tensor(const Scope&, Tensor)>;

/// A network with its inputs, which have the same values as PyTorch's.
struct Network {
  Json wanted;
  Graph graph;
  std::int64_t batch;
  Tensor images;
  Tensor labels;
  Tensor logits;
  Tensor loss;

  Network(const std::string& file, const Model& model)
      : wanted(testing::read_parity(file)),
        batch(wanted.at("batch")),
        images(graph.input("images", {batch, wanted.at("extent"), wanted.at("extent"), 3})),
        labels(graph.input("labels", {batch}, DType::u32)),
        logits(model(graph.root(), images)),
        loss(cross_entropy(logits, labels)) {}

  std::string images_name() const { return "images " + std::to_string(wanted.at("images").get<int>()); }

  /// {n, h, w, c} from {n, c, h, w}.
  std::vector<float> image_values() const { return in_our_order(images_name(), images.shape(), {0, 3, 1, 2}); }
  std::vector<std::uint32_t> label_values() const {
    std::vector<std::uint32_t> values;
    for (std::int64_t i = 0; i < batch; ++i)
      values.push_back(static_cast<std::uint32_t>(word("labels", static_cast<std::uint64_t>(i)) % 10));
    return values;
  }

  static std::vector<float> in_our_order(const std::string& name, const Shape& shape, const Axes& stored) {
    const Shape theirs = train::stored_shape(shape, stored);
    const std::vector<float> values =
        name.starts_with("images") ? uniform(name, theirs, -1, 1) : first_values(name, theirs);
    return train::decode({name, "F32", theirs, std::as_bytes(std::span(values))}, shape, stored);
  }

  /// Parameters and states, in the graph's order.
  std::vector<graph::Value> kept() const {
    std::vector<graph::Value> values;
    for (const graph::Value& value : graph.ir().values) {
      if (value.origin == graph::Origin::parameter || value.origin == graph::Origin::state) values.push_back(value);
    }
    return values;
  }
};

/// The global norm of all gradients.
double norm_of(const Json& gradients) {
  double square = 0;
  for (const Json& digest : gradients) square += std::pow(digest.at("norm").get<double>(), 2);
  return std::sqrt(square);
}

/// What the error of each gradient is measured in. In f32 1e-4 of its norm (of 1e-4 of all gradients' norm where it is
/// less: that of an offset which a batch norm takes out again is 0). In f16 the error that PyTorch's gradient has when
/// every number is rounded to f16 at random where Halfstep stores it: what f16 makes of a gradient depends on the order
/// of sums, and this is its size in the mean.
double expected_error(const Json& digest, double whole, const Precision& precision) {
  if (precision.parameters == DType::f16) return digest.at("f16_error");
  return 1e-4 * std::max(digest.at("norm").get<double>(), 1e-4 * whole);
}

/// In f32, the error of each gradient is within what is expected. In f16, errors have a root mean square within it (0.5
/// to 0.85 of it on all drivers, with HALFSTEP_LIMITS=loop_rounds=100 too: rounding to nearest has half the mean square
/// error of random rounding), that of each gradient is within 2.5 times it and that of all together within 1.5 times.
void check_gradients(const Network& network, const std::vector<graph::Value>& parameters,
                     const std::vector<std::vector<float>>& gradients, const Precision& precision) {
  const double whole = norm_of(network.wanted.at("gradients"));
  double square = 0;
  double expected_square = 0;
  double relative_square = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const graph::Value& value = parameters[i];
    const std::string name = train::stored_name(value.name);
    CAPTURE(name);
    const Json& digest = network.wanted.at("gradients").at(name);
    const double error = distance(name, testing::in_their_order(gradients[i], value.type.shape, value.stored), digest);
    const double expected = expected_error(digest, whole, precision);
    const double relative = error / expected;
    CHECK(relative <= (precision.parameters == DType::f16 ? 2.5 : 1));
    square += error * error;
    expected_square += expected * expected;
    relative_square += relative * relative;
  }
  CHECK(std::sqrt(square) <= 1.5 * std::sqrt(expected_square));
  CHECK(std::sqrt(relative_square / static_cast<double>(parameters.size())) <= 1);
}

/// One step's loss and logits within `allowed` of their norms, and its gradients.
void check_step(const Network& network, const Precision& precision, double allowed) {
  testing::OneStep one(network.graph, network.loss, network.logits, precision);
  step::Execution& execution = one.execution;
  const float scale = precision.loss_scale.kind == LossScale::Kind::none ? 1 : 1024;
  execution.set(one.of(network.images), network.image_values());
  execution.set(one.of(network.labels), network.label_values());
  execution.set(one.seed, std::vector<float>{scale});
  for (const auto& kept : {one.parameters, one.states}) {
    for (const graph::ValueId id : kept) {
      const graph::Value& value = one.value(id);
      execution.set(id, Network::in_our_order(train::stored_name(value.name), value.type.shape, value.stored));
    }
  }
  execution.run();
  const double wanted_loss = network.wanted.at("losses")[0];
  CHECK(execution.floats(one.loss)[0] == doctest::Approx(wanted_loss).epsilon(allowed));
  const std::vector<double> wanted_logits = network.wanted.at("logits");
  const std::vector<float> got = execution.floats(one.logits);
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - wanted_logits[i], 2);
    norm += std::pow(wanted_logits[i], 2);
  }
  CHECK(std::sqrt(difference / norm) <= allowed);
  std::vector<graph::Value> values;
  std::vector<std::vector<float>> found;
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    values.push_back(one.value(one.parameters[i]));
    found.push_back(execution.floats(one.gradients[i]));
    for (float& element : found.back()) element /= scale;
  }
  check_gradients(network, values, found, precision);
}

/// Ten steps of a trainer whose initial weights were read from a file with PyTorch's names.
void check_training(const Network& network) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "first.safetensors";
  std::vector<std::vector<float>> data;
  std::vector<io::StoredTensor> tensors;
  for (const graph::Value& value : network.kept()) {
    const std::string name = train::stored_name(value.name);
    const Shape shape = train::stored_shape(value.type.shape, value.stored);
    data.push_back(first_values(name, shape));
    tensors.push_back({name, "F32", shape, std::as_bytes(std::span(data.back()))});
  }
  io::write_safetensors(path, tensors, {});
  Trainer trainer = Trainer::compile(
      testing::device(), network.graph,
      {.loss = network.loss,
       .optimizer = Sgd{.rate = network.wanted.at("rate").get<float>(), .momentum = 0.9F, .weight_decay = 5e-4F},
       .precision = Precision::float32()});
  CHECK(trainer.load_weights(path).loaded.size() == tensors.size());
  const std::vector<float> images = network.image_values();
  const std::vector<std::uint32_t> labels = network.label_values();
  for (std::size_t step = 0; step < 10; ++step) {
    trainer.step({{"images", std::span<const float>(images)}, {"labels", std::span<const std::uint32_t>(labels)}});
    trainer.finish();
    CAPTURE(step);
    CHECK(trainer.report().loss == doctest::Approx(network.wanted.at("losses")[step].get<double>()).epsilon(1e-3));
    if (step > 0) continue;
    for (const auto& [name, digest] : network.wanted.at("first_statistics").items()) {
      CAPTURE(name);
      std::string ours = name;
      std::ranges::replace(ours, '.', '/');
      CHECK(distance(name, trainer.parameter(ours), digest) <= 1e-4 * digest.at("norm").get<double>());
    }
  }
  for (const graph::Value& value : network.kept()) {
    const std::string name = train::stored_name(value.name);
    CAPTURE(name);
    const std::vector<float> last =
        testing::in_their_order(trainer.parameter(value.name), value.type.shape, value.stored);
    const Json& digest = network.wanted.at("last").at(name);
    CHECK(distance(name, last, digest) <= 1e-3 * digest.at("norm").get<double>());
  }
}

Tensor resnet8(const Scope& scope, Tensor images) {
  return models::resnet_cifar(scope, images, 8);
}
Tensor resnet18(const Scope& scope, Tensor images) {
  return models::resnet(scope, images, 18, 10);
}
Tensor mobilenet(const Scope& scope, Tensor images) {
  return models::mobilenet_v2(scope, images, 10, {.width = 0.25, .dropout = 0});
}

}  // namespace

TEST_CASE("ResNet-8 is PyTorch's, in one step and in ten") {
  const Network network("parity_resnet8.json", resnet8);
  check_step(network, Precision::float32(), 1e-4);
  check_step(network, Precision::mixed(), 2e-2);
  check_training(network);
}

TEST_CASE("ResNet-18 is PyTorch's, in one step and in ten") {
  const Network network("parity_resnet18.json", resnet18);
  check_step(network, Precision::float32(), 1e-4);
  check_step(network, Precision::mixed(), 2e-2);
  if (testing::every_variant()) check_training(network);  // half a minute, of what ResNet-8's ten steps do
}

TEST_CASE("MobileNetV2 is PyTorch's in one step") {
  const Network network("parity_mobilenet_v2.json", mobilenet);
  check_step(network, Precision::float32(), 1e-4);
  check_step(network, Precision::mixed(), 2e-2);
}

TEST_CASE("MobileNetV2 has torchvision's names, shapes and order") {
  const Network network("parity_mobilenet_v2.json",
                        [](const Scope& scope, Tensor images) { return models::mobilenet_v2(scope, images); });
  std::vector<std::string> tensors;
  for (const graph::Value& value : network.kept()) {
    const Shape shape = train::stored_shape(value.type.shape, value.stored);
    tensors.push_back(fmt::format("{} {}", train::stored_name(value.name), fmt::join(shape, "x")));
  }
  CHECK(tensors == network.wanted.at("tensors").get<std::vector<std::string>>());
}

}  // namespace halfstep
