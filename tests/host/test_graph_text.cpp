// Graphs as text: every attribute of every operator appears in it, so that equal texts mean equal graphs.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "ops/norm/batch_norm.h"
#include "passes/backward.h"

using namespace halfstep;

namespace {

using Build = std::function<Tensor(Graph&)>;

Graph built(const Build& build) {
  Graph graph;
  build(graph);
  return graph;
}

Tensor images(Graph& graph) {
  return graph.input("images", {2, 8, 8, 4});
}

Build conv(const Conv2dOptions& options) {
  return [=](Graph& graph) {
    return conv2d(images(graph), graph.input("weight", {3, 3, 4 / options.groups, 8}), options);
  };
}

Build on_images(const std::function<Tensor(Tensor)>& op) {
  return [=](Graph& graph) { return op(images(graph)); };
}

/// The gradient of the mean of the result for the images.
Build gradient(const Build& build) {
  return [=](Graph& graph) {
    const Tensor loss = mean(build(graph));
    graph::Ir& ir = graph::ir_of(loss);
    const graph::ValueId wanted[] = {0};
    return ir.tensor(passes::add_backward(ir, loss.id(), graph.input("seed", {}).id(), wanted).front());
  };
}

// Graphs of one operator each, all different: each operator, and variants of it with one attribute changed.

std::vector<Build> operators_on_images() {
  return {
      conv({}),
      conv({.stride = {2, 1}}),
      conv({.padding = {0, 1}}),
      conv({.dilation = {2, 1}}),
      conv({.groups = 2}),
      on_images([](Tensor x) { return max_pool2d(x, {}); }),
      on_images([](Tensor x) {
        return max_pool2d(x, {.kernel = {2, 4}, .stride = Pair{2, 2}});
      }),
      on_images([](Tensor x) {
        return max_pool2d(x, {.stride = Pair{1, 2}});
      }),
      on_images([](Tensor x) {
        return average_pool2d(x, {.padding = {1, 1}});
      }),
      on_images([](Tensor x) {
        return average_pool2d(x, {.padding = {1, 1}, .count_padding = false});
      }),
      on_images([](Tensor x) { return leaky_relu(x, 0.1F); }),
      on_images([](Tensor x) { return leaky_relu(x, 0.2F); }),
      on_images([](Tensor x) { return scale(x, 0.1F); }),
      on_images([](Tensor x) { return scale(x, 0.100000001F * 1.0000001F); }),
      on_images([](Tensor x) { return offset(x, 0.1F); }),
      on_images([](Tensor x) { return offset(x, 0.2F); }),
      on_images([](Tensor x) { return sum(x, {1}); }),
      on_images([](Tensor x) { return sum(x, {2}); }),
      on_images([](Tensor x) { return sum(x, {1}, true); }),
      on_images([](Tensor x) { return mean(x, {1}); }),
      on_images([](Tensor x) {
        return reshape(x, {2, 256});
      }),
      on_images([](Tensor x) { return reshape(x, {512}); }),
      on_images([](Tensor x) {
        return concat({x, x}, 0);
      }),
      on_images([](Tensor x) {
        return concat({x, x}, 1);
      }),
      on_images([](Tensor x) {
        return slice(x, {0, 0, 0, 0}, {2, 4, 8, 4});
      }),
      on_images([](Tensor x) {
        return slice(x, {0, 4, 0, 0}, {2, 8, 8, 4});
      }),
      on_images([](Tensor x) {
        return slice(x, {0, 0, 0, 0}, {2, 8, 8, 4}, {1, 2, 1, 1});
      }),
      on_images([](Tensor x) {
        return pad(x, {0, 0, 0, 0}, {0, 0, 0, 4});
      }),
      on_images([](Tensor x) { return dropout(x, 0.25F); }),
      on_images([](Tensor x) { return dropout(x, 0.5F); }),
      on_images([](Tensor x) { return dropout(dropout(x, 0.25F), 0.25F); }),
      on_images([](Tensor x) { return cast(x, DType::f16); }),
      on_images([](Tensor x) { return cast(x, DType::f32); }),
  };
}

std::vector<Build> transformer_operators() {
  const auto rows = [](const std::function<Tensor(Tensor)>& op) {
    return [=](Graph& graph) { return op(graph.input("rows", {4, 4, 4})); };
  };
  const auto scores = [](const AttentionOptions& options) {
    return [=](Graph& graph) {
      const Tensor q = graph.input("q", {2, 2, 4, 4});
      return attention(q, q, q, options);
    };
  };
  return {
      rows([](Tensor x) { return exp(x); }),
      rows([](Tensor x) { return log(x); }),
      rows([](Tensor x) { return pow(x, 2); }),
      rows([](Tensor x) { return pow(x, 3); }),
      rows([](Tensor x) { return gelu(x); }),
      rows([](Tensor x) { return gelu(x, Gelu::tanh); }),
      rows([](Tensor x) { return maximum(x, x); }),
      rows([](Tensor x) { return minimum(x, x); }),
      rows([](Tensor x) {
        return permute(x, {0, 2, 1});
      }),
      rows([](Tensor x) {
        return permute(x, {1, 0, 2});
      }),
      rows([](Tensor x) {
        return split(x, {1, 3}, 1)[0];
      }),
      rows([](Tensor x) {
        return split(x, {2, 2}, 1)[0];
      }),
      rows([](Tensor x) { return softmax(x); }),
      rows([](Tensor x) { return log_softmax(x); }),
      rows([](Tensor x) { return layer_norm(x); }),
      rows([](Tensor x) { return layer_norm(x, {}, {}, 1e-3F); }),
      rows([](Tensor x) { return rms_norm(x); }),
      rows([](Tensor x) { return rotary(x); }),
      rows([](Tensor x) { return rotary(x, {.pairs = RotaryPairs::interleaved}); }),
      rows([](Tensor x) { return rotary(x, {.base = 500}); }),
      rows([](Tensor x) { return rotary(x, {.position_scale = 0.5F}); }),
      rows([](Tensor x) { return rotary(x, {.base_scale = 2}); }),
      rows([](Tensor x) { return rotary(x, {.offset = 1}); }),
      rows([](Tensor x) { return rotary(x, {.axis = 0}); }),
      scores({}),
      scores({.causal = true}),
      scores({.window = 2}),
      scores({.window = 3}),
      scores({.scale = 2}),
      scores({.dropout = 0.5F}),
  };
}

std::vector<Build> products_and_losses() {
  std::vector<Build> all;
  for (const MatmulOptions& options : {MatmulOptions{}, {true, false}, {false, true}, {true, true}}) {
    all.push_back([=](Graph& graph) { return matmul(graph.input("a", {4, 4}), graph.input("b", {4, 4}), options); });
  }
  for (const float smoothing : {0.0F, 0.1F}) {
    all.push_back([=](Graph& graph) {
      return cross_entropy(graph.input("logits", {2, 3}), graph.input("labels", {2}, DType::u32), smoothing);
    });
  }
  all.push_back([=](Graph& graph) {
    return cross_entropy(graph.input("logits", {2, 3}), graph.input("labels", {2}, DType::u32), 0, 2);
  });
  for (const float beta : {1.0F, 2.0F}) {
    all.push_back([=](Graph& graph) { return huber_loss(graph.input("a", {3}), graph.input("b", {3}), beta); });
  }
  return all;
}

std::vector<Build> norms() {
  std::vector<Build> all;
  for (const auto& [groups, epsilon] : {std::pair{1, 1e-5F}, {2, 1e-5F}, {2, 1e-3F}}) {
    all.push_back([=](Graph& graph) {
      return group_norm(images(graph), groups, graph.input("w", {4}), graph.input("b", {4}), epsilon);
    });
  }
  for (const BatchNormOptions& options : {BatchNormOptions{}, {.epsilon = 1e-3F}, {.momentum = 0.2F}}) {
    all.push_back([=](Graph& graph) {
      const RunningStatistics running{graph.input("mean", {4}), graph.input("variance", {4})};
      return ops::batch_norm_training(images(graph), graph.input("w", {4}), graph.input("b", {4}), running, options).y;
    });
  }
  return all;
}

std::vector<Build> different_graphs() {
  std::vector<Build> all = operators_on_images();
  const std::size_t differentiable = all.size() - 2;  // without the casts, the first of which has another type
  for (std::size_t i = 0; i < differentiable; ++i) all.push_back(gradient(all[i]));
  for (const Build& build : transformer_operators()) {
    all.push_back(build);
    all.push_back(gradient(build));
  }
  for (const auto& more : {products_and_losses(), norms()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("graphs that compute different things have different texts, and equal ones the same") {
  std::vector<Graph> graphs;
  for (const Build& build : different_graphs()) graphs.push_back(built(build));
  const std::vector<Build> again = different_graphs();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    CHECK(built(again[i]) == graphs[i]);
    CHECK(hash(built(again[i])) == hash(graphs[i]));
    for (std::size_t j = 0; j < i; ++j) {
      CHECK_MESSAGE(!(graphs[i] == graphs[j]), to_string(graphs[i]));
      CHECK(hash(graphs[i]) != hash(graphs[j]));
    }
  }
}

TEST_CASE("a graph's text has names, types, initial values and attributes") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 5, 5, 3});
  const Scope layer = graph.root() / "conv1";
  const Tensor weight = layer.parameter("weight", {3, 3, 3, 8}, normal(0.5F), {3, 2, 0, 1});
  const Tensor calls = layer.state("calls", {}, constant(1));
  layer.cache("keys", {1, 2, 3, 4});
  relu(conv2d(x, weight, {.padding = {1, 1}}));
  update(calls, scale(calls, 2));
  CHECK(to_string(graph) ==
        "input x f32 {2, 5, 5, 3}\n"
        "parameter conv1/weight f32 {3, 3, 3, 8} normal(0, 0.5) stored={3, 2, 0, 1}\n"
        "state conv1/calls f32 {} constant(1)\n"
        "cache conv1/keys f32 {1, 2, 3, 4} constant(0)\n"
        "conv1/conv2d:0 f32 {2, 5, 5, 8} = conv2d(x, conv1/weight) stride={1, 1} padding={1, 1} dilation={1, 1} "
        "groups=1\n"
        "relu:1 f32 {2, 5, 5, 8} = relu(conv1/conv2d:0)\n"
        "scale:2 f32 {} = scale(conv1/calls) factor=2\n"
        "update conv1/calls = scale:2\n");
}

TEST_CASE("handles outlive the graph that they are of") {
  std::optional<Graph> graph(std::in_place);
  const Tensor x = graph->input("x", {2, 3});
  const Scope scope = graph->root() / "layer";
  const Tensor y = relu(x);
  graph.reset();
  CHECK(x.name() == "x");
  CHECK(y.shape() == Shape{2, 3});
  const Tensor z = add(y, scope.parameter("bias", {3}, constant(0)));
  CHECK(z.shape() == Shape{2, 3});
}
