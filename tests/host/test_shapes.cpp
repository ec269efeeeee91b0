#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

/// Extents whose product exceeds any memory, or int64, passed to every public function that takes a shape or returns a
/// tensor with one.
namespace halfstep {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t large = std::int64_t{1} << 40;

/// Whether `make` throws an Error that has `part` in its text.
void check_refused(const char* part, const std::function<void(Graph&)>& make) {
  CAPTURE(part);
  Graph graph;
  CHECK_THROWS_WITH_AS(make(graph), doctest::Contains(part), Error);
}

}  // namespace

TEST_CASE("shapes of more elements than memory can have are refused where they are given") {
  for (const Shape& shape : {Shape{huge, 4}, Shape{huge, 2}, Shape{most}, Shape{huge}, Shape{most, most, most},
                             Shape{large, 3, large}, Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}}) {
    const std::string text = to_string(shape);
    check_refused(text.c_str(), [&](Graph& graph) { graph.input("x", shape); });
    check_refused(text.c_str(), [&](Graph& graph) { graph.root().parameter("w", shape, constant(0)); });
    check_refused(text.c_str(), [&](Graph& graph) { graph.root().state("s", shape, constant(0)); });
    check_refused(text.c_str(), [&](Graph& graph) { reshape(graph.input("x", {4}), shape); });
  }
  check_refused("'x'", [](Graph& graph) { graph.input("x", {huge, 4}); });
  check_refused("'layer/w'", [](Graph& graph) { (graph.root() / "layer").parameter("w", {huge, 4}, constant(0)); });
  Graph graph;
  CHECK(graph.input("fits", {std::int64_t{1} << 30, 4}).dim(0) == std::int64_t{1} << 30);
}

TEST_CASE("elements() counts, and does not wrap") {
  CHECK(elements({}) == 1);
  CHECK(elements({2, 0, 3}) == 0);
  CHECK(elements({huge, huge, 0}) == 0);
  CHECK(elements({most}) == most);
  CHECK_THROWS_WITH_AS(elements({huge, 4}), doctest::Contains("{4611686018427387904, 4}"), Error);
  CHECK_THROWS_AS(elements({huge, 2}), Error);
  CHECK_THROWS_AS(elements({2, -1}), Error);
}

TEST_CASE("reshape names a shape whose product wraps round to the right number") {
  check_refused("{4611686018427387904, 4, 5}", [](Graph& graph) { reshape(graph.input("x", {5}), {huge, 4, 5}); });
  check_refused("{4611686018427387904, 4, -1}", [](Graph& graph) { reshape(graph.input("x", {5}), {huge, 4, -1}); });
}

TEST_CASE("operators refuse results of more elements than memory can have") {
  const auto column = [](Graph& graph) { return graph.input("column", {large, 1}); };
  const auto row = [](Graph& graph) { return graph.input("row", {1, large}); };
  const char* const product = "{1099511627776, 1099511627776}";
  check_refused(product, [&](Graph& graph) { add(column(graph), row(graph)); });
  check_refused(product, [&](Graph& graph) { sub(column(graph), row(graph)); });
  check_refused(product, [&](Graph& graph) { mul(column(graph), row(graph)); });
  check_refused(product, [&](Graph& graph) { div(column(graph), row(graph)); });
  check_refused(product, [&](Graph& graph) { matmul(column(graph), row(graph)); });
  check_refused(product, [&](Graph& graph) { linear(column(graph), row(graph)); });
  const std::int64_t half = std::int64_t{1} << 55;
  check_refused("concat", [&](Graph& graph) {
    const Tensor part = graph.input("part", {half});
    concat({part, part, part, part}, 0);
  });
  check_refused("[pad]", [&](Graph& graph) { pad(graph.input("x", {half / 4, 1, 1}), {0, 1, 1}, {0, 1, 1}); });
  check_refused("conv2d", [&](Graph& graph) {
    const Tensor images = graph.input("images", {large, 1, 1, 1});
    conv2d(images, graph.input("weight", {1, 1, 1, large}));
  });
  check_refused("conv2d", [&](Graph& graph) {
    const Tensor images = graph.input("images", {large, 1, 1, 1});
    conv2d_transpose(images, graph.input("weight", {1, 1, large, 1}));
  });
}

TEST_CASE("options of windows that int64 arithmetic would wrap on are refused") {
  const auto images = [](Graph& graph) { return graph.input("images", {2, 6, 7, 4}); };
  const auto weight = [](Graph& graph) { return graph.input("weight", {3, 3, 4, 4}); };
  for (const std::int64_t value : {huge, most, -most - 1, large}) {
    const Pair pair{value, 1};
    check_refused("max_pool2d", [&](Graph& graph) { max_pool2d(images(graph), {.kernel = pair}); });
    check_refused("average_pool2d", [&](Graph& graph) { average_pool2d(images(graph), {.stride = pair}); });
    check_refused("max_pool2d", [&](Graph& graph) { max_pool2d(images(graph), {.padding = pair}); });
    check_refused("adaptive_max_pool2d", [&](Graph& graph) { adaptive_max_pool2d(images(graph), pair); });
    check_refused("adaptive_average_pool2d", [&](Graph& graph) { adaptive_average_pool2d(images(graph), pair); });
    check_refused("conv2d", [&](Graph& graph) { conv2d(images(graph), weight(graph), {.stride = pair}); });
    check_refused("conv2d", [&](Graph& graph) { conv2d(images(graph), weight(graph), {.padding = pair}); });
    check_refused("conv2d", [&](Graph& graph) { conv2d(images(graph), weight(graph), {.dilation = pair}); });
    check_refused("conv2d", [&](Graph& graph) { conv2d(images(graph), weight(graph), {.groups = value}); });
    const auto transpose = [&](Conv2dOptions options, Pair padding = {0, 0}) {
      check_refused("conv2d_transpose",
                    [&](Graph& graph) { conv2d_transpose(images(graph), weight(graph), options, padding); });
    };
    transpose({.stride = pair});
    transpose({.padding = pair});
    transpose({.dilation = pair});
    transpose({.groups = value});
    transpose({}, pair);
    check_refused("pad", [&](Graph& graph) { pad(graph.input("x", {4}), {value}, {0}); });
    check_refused("pad", [&](Graph& graph) { pad(graph.input("x", {4}), {0}, {value}); });
    check_refused("slice", [&](Graph& graph) { slice(graph.input("x", {4}), {0}, {value}); });
    check_refused("slice", [&](Graph& graph) { slice(graph.input("x", {4}), {value}, {4}); });
    check_refused("group_norm", [&](Graph& graph) {
      const Tensor four = graph.input("four", {4});
      group_norm(images(graph), value, four, four);
    });
  }
  check_refused("conv2d", [&](Graph& graph) {
    const Tensor one = graph.input("images", {1, 1, 1, large});
    conv2d(one, graph.input("weight", {1, 1, large, large / large}), {.groups = large});
  });
}

TEST_CASE("adaptive pooling refuses sizes that its kernel's 32-bit positions do not reach") {
  Graph graph;
  const Tensor images = graph.input("images", {1, 50000, 1, 4});
  CHECK_THROWS_WITH_AS(adaptive_max_pool2d(images, {50000, 1}), doctest::Contains("below 2^31"), Error);
  CHECK_THROWS_WITH_AS(adaptive_average_pool2d(images, {50000, 1}), doctest::Contains("below 2^31"), Error);
  CHECK(adaptive_max_pool2d(images, {40000, 3}).shape() == Shape{1, 40000, 3, 4});
}

TEST_CASE("a step of a slice beyond its end takes the first element alone") {
  Graph graph;
  const Tensor x = graph.input("x", {9});
  for (const std::int64_t step : {std::int64_t{7}, std::int64_t{1} << 32, most}) {
    CHECK(slice(x, {2}, {9}, {step}).shape() == Shape{1});
  }
  CHECK(slice(x, {2}, {9}, {6}).shape() == Shape{2});
}

TEST_CASE("initializers of no inputs are refused") {
  CHECK_THROWS_WITH_AS(he(0), doctest::Contains("[he]"), Error);
  CHECK_THROWS_WITH_AS(glorot(-3, 4), doctest::Contains("[glorot]"), Error);
  CHECK_THROWS_AS(glorot(3, 0), Error);
  CHECK(glorot(most, most).b > 0);
}

}  // namespace halfstep
