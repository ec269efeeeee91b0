#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>
#include <halfstep/precision.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "graph/ir.h"
#include "passes/backward.h"
#include "passes/precision.h"

namespace halfstep {
namespace {

std::size_t count(const graph::Ir& ir, std::string_view op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(ir.nodes, [&](const graph::Node& node) { return node.op->name() == op; }));
}

graph::ValueId add_seed(graph::Ir& ir) {
  graph::Value seed;
  seed.type = {DType::f32, {}};
  seed.name = "loss_scale";
  seed.origin = graph::Origin::state;
  return ir.add_value(seed);
}

}  // namespace

TEST_CASE("names are taken once, and shapes are positive") {
  Graph graph;
  graph.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(graph.input("x", {2}),
                       "[graph] expected a new name, got 'x' a second time. Hint: put each layer in a scope of its own",
                       Error);
  CHECK_THROWS_AS(graph.input("y", {2, 0}), Error);
  CHECK_THROWS_AS(graph.input("", {2}), Error);
  // Checkpoints could not store it.
  CHECK_THROWS_WITH_AS((graph.root() / "couch\xe9").parameter("weight", {4}, constant(0)),
                       "[graph] expected a name in UTF-8, got another byte after 'couch'", Error);
  (graph.root() / "couch\u00e9").parameter("weight", {4}, constant(0));
  const Scope layer = graph.root() / "layer";
  layer.parameter("weight", {4, 5}, constant(0));
  CHECK_THROWS_AS(layer.parameter("weight", {4}, constant(0)), Error);
  CHECK(graph.parameter_count() == 24);
}

TEST_CASE("initial values are numbers, drawn from a range or a deviation that there is") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float most = std::numeric_limits<float>::max();
  Graph graph;
  const Scope layer = graph.root() / "layer";
  for (const Initializer& wrong :
       {constant(nan), constant(-infinity), uniform(2, 1), uniform(nan, 1), uniform(0, nan), uniform(-infinity, 0),
        uniform(0, infinity), uniform(-most, most), normal(-1), normal(nan), normal(infinity), normal(1, nan),
        normal(1, infinity), normal(most / 6)}) {
    CAPTURE(wrong.a);
    CAPTURE(wrong.b);
    CHECK_THROWS_WITH_AS(layer.parameter("weight", {4}, wrong), doctest::Contains("'layer/weight'"), Error);
    CHECK_THROWS_WITH_AS(layer.state("mean", {4}, wrong), doctest::Contains("'layer/mean'"), Error);
  }
  CHECK_THROWS_WITH_AS(layer.parameter("weight", {4}, constant(nan)),
                       "[graph] expected a finite initial value of 'layer/weight', got nan", Error);
  CHECK_THROWS_WITH_AS(layer.parameter("weight", {4}, uniform(2, 1)),
                       "[graph] expected initial values of 'layer/weight' in a finite range, got 2 to 1", Error);
  CHECK_THROWS_WITH_AS(layer.parameter("weight", {4}, normal(-1, 3)),
                       "[graph] expected a mean and a standard deviation of 0 or more for finite initial values of "
                       "'layer/weight', got 3 and -1",
                       Error);
  layer.parameter("weight", {4}, normal(0, 3));
  layer.state("variance", {4}, normal(most / 8));
  layer.parameter("bias", {4}, uniform(2, 2));
  layer.state("mean", {4}, constant(-most));
  CHECK(graph.parameter_count() == 8);
}

TEST_CASE("tensors of two graphs do not mix") {
  Graph one;
  Graph two;
  const Tensor a = one.input("a", {2});
  const Tensor b = two.input("b", {2});
  CHECK_THROWS_AS(add(a, b), Error);
  for (int i = 0; i < 100; ++i) two.input(std::to_string(i), {2});
  const Tensor beyond = two.input("beyond", {2});  // the first graph has no value with this index
  CHECK_THROWS_WITH_AS(add(a, beyond), "[add] expected tensors of one graph, got 'beyond' of another", Error);
  CHECK_THROWS_AS(update(one.root().state("s", {2}, constant(0)), beyond), Error);
}

TEST_CASE("a tensor that was never set is an Error in whatever is done with it") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3});
  const Tensor never;
  CHECK(x.defined());
  CHECK(!never.defined());
  CHECK_THROWS_WITH_AS(never.shape(), "[tensor] expected a value of a graph, got a tensor that was never set", Error);
  CHECK_THROWS_AS(never.name(), Error);
  CHECK_THROWS_AS(never.dim(0), Error);
  CHECK_THROWS_WITH_AS(relu(never), "[relu] expected values of a graph, got a tensor that was never set", Error);
  CHECK_THROWS_WITH_AS(linear(x, x, never), doctest::Contains("never set"), Error);
  CHECK_THROWS_AS(add(x, never), Error);
  CHECK_THROWS_AS(add(never, x), Error);
  CHECK_THROWS_AS(reshape(never, {2}), Error);
  CHECK_THROWS_AS(flatten(never), Error);
  CHECK_THROWS_AS(slice(never, {0}, {1}), Error);
  CHECK_THROWS_AS(concat({x, never}, 0), Error);
  CHECK_THROWS_AS(sum(never), Error);
  CHECK_THROWS_AS(conv2d_transpose(x, never), Error);
  CHECK_THROWS_AS(instance_norm(never, x, x), Error);
  CHECK_THROWS_AS(batch_norm(x, x, x, RunningStatistics{}), Error);
  CHECK_THROWS_AS(update(never, x), Error);
  CHECK_THROWS_AS(update(graph.root().state("s", {2, 3}, constant(0)), never), Error);
  Tensor later;
  later = x;
  CHECK(relu(later).shape() == Shape{2, 3});
}

TEST_CASE("a value used twice gets the sum of its gradients, and no more additions than that") {
  Graph graph;
  const Tensor w = graph.root().parameter("w", {3}, constant(1));
  const Tensor loss = sum(mul(w, w));
  graph::Ir ir = graph.ir();
  const graph::ValueId parameters[] = {w.id()};
  const auto gradients = passes::add_backward(ir, loss.id(), add_seed(ir), parameters);
  REQUIRE(gradients.size() == 1);
  CHECK(ir.values[gradients[0]].type == TensorType{DType::f32, {3}});
  CHECK(count(ir, "add") == 1);
}

TEST_CASE("no gradient is computed for inputs, or for what the loss does not need") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor w = graph.root().parameter("w", {3}, constant(1));
  const Tensor loss = mean(bias(sigmoid(x), w));
  graph::Ir ir = graph.ir();
  const graph::ValueId parameters[] = {w.id()};
  passes::add_backward(ir, loss.id(), add_seed(ir), parameters);
  CHECK(count(ir, "sigmoid_gradient") == 0);
}

TEST_CASE("a parameter that the loss does not depend on is an error that names it") {
  Graph graph;
  const Tensor w = graph.root().parameter("w", {3}, constant(1));
  const Tensor idle = graph.root().parameter("idle", {3}, constant(1));
  const Tensor loss = sum(w);
  graph::Ir ir = graph.ir();
  const graph::ValueId parameters[] = {w.id(), idle.id()};
  CHECK_THROWS_WITH_AS(passes::add_backward(ir, loss.id(), add_seed(ir), parameters), doctest::Contains("'idle'"),
                       Error);
}

TEST_CASE("only the nodes that are wanted run") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor used = relu(x);
  tanh(x);
  const graph::ValueId wanted[] = {used.id()};
  CHECK(passes::needed_nodes(graph.ir(), wanted).size() == 1);
}

TEST_CASE("the precision pass narrows what computes, and leaves labels, losses and their targets") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor target = graph.input("target", {4, 3});
  const Tensor w = graph.root().parameter("w", {3}, constant(1));
  const Tensor y = bias(x, w);
  const Tensor loss = mse_loss(y, target);
  const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), Precision::mixed());
  const auto dtype = [&](Tensor tensor) { return lowered.ir.values[lowered.value[tensor.id()]].type.dtype; };
  CHECK(dtype(x) == DType::f16);
  CHECK(dtype(w) == DType::f16);
  CHECK(dtype(y) == DType::f16);
  CHECK(dtype(target) == DType::f32);
  CHECK(dtype(loss) == DType::f32);
}

TEST_CASE("a value that was cast by hand is cast back once where operators compute, not at every use") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor wide = cast(relu(x), DType::f32);
  add(sigmoid(wide), tanh(wide));
  const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), Precision::mixed());
  const auto to = [&](DType dtype) {
    return std::ranges::count_if(lowered.ir.nodes, [&](const graph::Node& node) {
      return node.op->name() == "cast" && lowered.ir.values[node.outputs[0]].type.dtype == dtype;
    });
  };
  CHECK(to(DType::f32) == 1);
  CHECK(to(DType::f16) == 1);
}

TEST_CASE("float32 leaves the graph as it was written") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  relu(x);
  const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), Precision::float32());
  CHECK(lowered.ir.nodes.size() == graph.ir().nodes.size());
  CHECK(lowered.ir.values.size() == graph.ir().values.size());
}

}  // namespace halfstep
