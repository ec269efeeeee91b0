#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ir.h"
#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/layers.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/resnet_cifar.h"

using namespace halfstep;

TEST_CASE("fashion_conv has the parameters it is known for") {
  Graph graph;
  const Tensor images = graph.input("images", {32, 28, 28, 1});
  CHECK(models::fashion_conv(graph.root(), images).shape() == Shape{32, 10});
  CHECK(graph.parameter_count() == 260394);
}

TEST_CASE("fashion_cnn halves the images twice") {
  Graph graph;
  const Tensor images = graph.input("images", {8, 28, 28, 1});
  CHECK(models::fashion_cnn(graph.root(), images).shape() == Shape{8, 10});
  CHECK(graph.parameter_count() == (9 * 32 + 32) + (9 * 32 * 64 + 64) + (7 * 7 * 64 * 128 + 128) + (128 * 10 + 10));
}

TEST_CASE("LeNet-5 has 61,706 parameters for grey images of 32 as of 28") {
  for (const std::int64_t extent : {32, 28}) {
    Graph graph;
    const Tensor images = graph.input("images", {4, extent, extent, 1});
    CHECK(models::lenet5(graph.root(), images).shape() == Shape{4, 10});
    CHECK(graph.parameter_count() == 61706);
  }
}

TEST_CASE("An mlp is as deep as it is asked to be") {
  for (const std::int64_t depth : {0, 1, 20}) {
    Graph graph;
    const Tensor x = graph.input("x", {4, 5, 3});
    const std::vector<std::int64_t> hidden(static_cast<std::size_t>(depth), 15);
    CHECK(models::mlp(graph.root(), x, hidden, 7).shape() == Shape{4, 7});
    CHECK(graph.parameter_count() == depth * (15 * 15 + 15) + 15 * 7 + 7);
  }
}

TEST_CASE("Layers name their parameters in their scope and refuse what cannot be") {
  Graph graph;
  const Tensor images = graph.input("images", {2, 8, 8, 4});
  const Tensor grouped = models::conv(graph.root() / "a", images, 6, 3, {.groups = 2});
  CHECK(grouped.shape() == Shape{2, 6, 6, 6});
  CHECK(graph.parameter_count() == 3 * 3 * 2 * 6 + 6);
  CHECK_THROWS_AS(models::conv(graph.root() / "a", images, 6, 3), Error);
  CHECK_THROWS_AS(models::conv(graph.root() / "b", images, 6, 3, {.groups = 0}), Error);
  CHECK_THROWS_AS(models::conv(graph.root() / "c", images, 0, 3), Error);
  CHECK_THROWS_AS(models::dense(graph.root() / "d", images, -1), Error);
}

TEST_CASE("resnet_cifar has the parameters that its paper gives it") {
  struct Case {
    std::int64_t depth;
    std::int64_t parameters;
  };
  // He et al. 2016, table 6: 0.27M for 20 layers, 0.85M for 56.
  for (const Case& c : {Case{8, 75290}, Case{20, 269722}, Case{56, 853018}}) {
    Graph graph;
    const Tensor images = graph.input("images", {2, 32, 32, 3});
    CHECK(models::resnet_cifar(graph.root(), images, c.depth).shape() == Shape{2, 10});
    CHECK(graph.parameter_count() == c.parameters);
  }
  Graph graph;
  const Tensor images = graph.input("images", {2, 32, 32, 3});
  models::resnet_cifar(graph.root(), images, 8, 10, models::Shortcut::projection);
  CHECK(graph.parameter_count() == 75290 + (16 * 32 + 64) + (32 * 64 + 128));
  for (const std::int64_t depth : {2, 7, 9, 18, -4}) {
    CHECK_THROWS_WITH_AS(models::resnet_cifar(graph.root() / "x", images, depth), doctest::Contains("6N + 2"), Error);
  }
}

TEST_CASE("resnet has torchvision's numbers of parameters and names") {
  struct Case {
    std::int64_t depth;
    std::int64_t parameters;
  };
  for (const Case& c : {Case{18, 11689512}, Case{34, 21797672}, Case{50, 25557032}}) {
    Graph graph;
    const Tensor images = graph.input("images", {2, 224, 224, 3});
    CHECK(models::resnet(graph.root(), images, c.depth, 1000).shape() == Shape{2, 1000});
    CHECK(graph.parameter_count() == c.parameters);
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(graph.ir().values, [&](const graph::Value& value) { return value.name == name; });
    };
    for (const char* name : {"conv1/weight", "bn1/running_var", "layer1/0/conv1/weight", "layer2/0/downsample/0/weight",
                             "layer4/1/bn2/bias", "fc/bias"}) {
      CHECK_MESSAGE(has(name), name);
    }
    CHECK(has("layer1/0/conv3/weight") == (c.depth == 50));
  }
  Graph graph;
  const Tensor images = graph.input("images", {2, 64, 64, 3});
  CHECK_THROWS_WITH_AS(models::resnet(graph.root(), images, 20), doctest::Contains("18, 34 or 50"), Error);
}

TEST_CASE("mobilenet_v2 has torchvision's numbers of parameters, and keeps small images large enough") {
  struct Case {
    double width;
    std::int64_t parameters;
  };
  // torchvision's number, and those that its rounding of channels gives for two other widths.
  for (const Case& c : {Case{1, 3504872}, Case{0.5, 1968680}, Case{1.4, 6108776}}) {
    Graph graph;
    const Tensor images = graph.input("images", {2, 224, 224, 3});
    CHECK(models::mobilenet_v2(graph.root(), images, 1000, {.width = c.width}).shape() == Shape{2, 1000});
    CHECK(graph.parameter_count() == c.parameters);
  }
  Graph graph;
  const Tensor images = graph.input("images", {2, 32, 32, 3});
  CHECK(models::mobilenet_v2(graph.root(), images, 10, {.stem = models::Stem::small}).shape() == Shape{2, 10});
  const auto pooled =
      std::ranges::find_if(graph.ir().nodes, [](const graph::Node& node) { return node.op->name() == "mean"; });
  REQUIRE(pooled != graph.ir().nodes.end());
  CHECK(graph.ir().values[pooled->inputs[0]].type.shape == Shape{2, 4, 4, 1280});
  for (const double width : {0.0, -1.0, 11.0, std::nan("")}) {
    CHECK_THROWS_WITH_AS(models::mobilenet_v2(graph.root() / "x", images, 10, {.width = width}),
                         doctest::Contains("width"), Error);
  }
  CHECK_THROWS_WITH_AS(models::mobilenet_v2(graph.root() / "x", images, 10, {.width = 0.05}),
                       "[mobilenet_v2] expected a width from 0.1 to 10, got 0.05", Error);
}

TEST_CASE("a width of mobilenet_v2 that is a tie in decimals rounds channels as torchvision does") {
  Graph graph;
  models::mobilenet_v2(graph.root(), graph.input("images", {2, 64, 64, 3}), 10, {.width = 0.475});
  // 160 * 0.475 is 76, half way between 72 and 80.
  const auto kernel = std::ranges::find(graph.ir().values, "features/14/conv/2/weight", &graph::Value::name);
  REQUIRE(kernel != graph.ir().values.end());
  CHECK(kernel->type.shape.back() == 80);
}

TEST_CASE("mobilenet_v2 adds to a block what it was given only where the stride is 1") {
  const auto sums = [](std::int64_t size) {
    Graph graph;
    models::mobilenet_v2(graph.root(), graph.input("images", {2, size, size, 3}), 10, {.width = 0.1});
    return std::ranges::count(graph.ir().nodes, "add", [](const graph::Node& node) { return node.op->name(); });
  };
  CHECK(sums(224) > 0);
  CHECK(sums(16) == sums(224));
}
