#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <array>

#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/layers.h"
#include "models/lenet5.h"
#include "models/mlp.h"

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
