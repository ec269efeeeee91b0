#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <string>

#include "graph/ir.h"
#include "models/layers.h"
#include "models/resnet_cifar.h"
#include "step/step_program.h"
#include "train/step_graph.h"

namespace halfstep {
namespace {

using Model = std::function<Tensor(const Scope&, Tensor)>;

step::StepGraph step_graph(const Model& model, const Shape& input, const std::string& pattern) {
  Graph graph;
  const Tensor x = graph.input("x", input);
  const Tensor labels = graph.input("labels", {input.front()}, DType::u32);
  return train::training_graph(
      graph,
      {.loss = cross_entropy(model(graph.root(), x), labels), .recompute = pattern, .precision = Precision::mixed()});
}

plan::Plan plan_of(const Model& model, const Shape& input, const std::string& pattern) {
  const step::StepGraph graph = step_graph(model, input, pattern);
  plan::Target target;
  target.max_storage_buffers = 16;
  target.max_invocations = 256;
  return step::training_program(target, graph, step::layout_of(graph), {.precision = Precision::mixed()}, {}).plan;
}

/// Blocks of four dense layers.
Tensor deep_mlp(const Scope& scope, Tensor x) {
  for (int i = 0; i < 16; ++i) {
    const Scope block = scope / ("block" + std::to_string(i));
    for (const char* layer : {"a", "b", "c", "d"}) x = relu(models::dense(block / layer, x, 64));
  }
  return models::dense(scope / "head", x, 10);
}

/// Products that are kept, each followed by a block that starts with elementwise operators.
Tensor products_and_blocks(const Scope& scope, Tensor x) {
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    const Tensor kept = matmul(x, (scope / ("product" + number)).parameter("weight", {64, 64}, constant(0)));
    const Scope block = scope / ("block" + number);
    const Tensor inner = relu(bias(kept, block.parameter("offset", {64}, constant(0))));
    x = models::dense(block / "dense", inner, 64);
  }
  return models::dense(scope / "head", x, 10);
}

Tensor resnet20(const Scope& scope, Tensor images) {
  return models::resnet_cifar(scope, images, 20);
}

/// Runs `work` in a thread with so small a stack.
void run_with_stack(std::size_t bytes, std::function<void()> work) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::ptrdiff_t recomputed(const plan::Plan& plan) {
  return std::ranges::count_if(plan.program.dispatches, &plan::Dispatch::recomputed);
}

}  // namespace

TEST_CASE("what is computed again takes no memory in between") {
  const Shape rows{512, 64};
  const plan::Plan kept = plan_of(deep_mlp, rows, "");
  const plan::Plan lean = plan_of(deep_mlp, rows, "block*");
  CHECK(lean.arena.bytes < kept.arena.bytes / 2);
  CHECK(recomputed(kept) == 0);
  // Of each block the first three layers, each a product with a fused activation; the fourth's result is the output.
  CHECK(recomputed(lean) == 16 * 3);
  CHECK(lean.program.dispatches.size() == kept.program.dispatches.size() + static_cast<std::size_t>(recomputed(lean)));
  CHECK(lean.text().find("block3/b/linear + relu (recomputed)") != std::string::npos);

  const Shape images{32, 32, 32, 3};
  CHECK(plan_of(resnet20, images, "layer?/?").arena.bytes < plan_of(resnet20, images, "").arena.bytes * 7 / 10);
}

TEST_CASE("what is computed again is never fused with forward operators, which would have to keep it") {
  const Shape rows{512, 64};
  const plan::Plan lean = plan_of(products_and_blocks, rows, "block?");
  CHECK(recomputed(lean) == 4);
  // It keeps the products in place of what follows them, and not both.
  CHECK(lean.arena.bytes <= plan_of(products_and_blocks, rows, "").arena.bytes);
}

TEST_CASE("the outermost scope that matches is computed again as a whole") {
  const auto arena = [](const char* pattern) { return plan_of(deep_mlp, {512, 64}, pattern).arena.bytes; };
  CHECK(arena("block*") == arena("block?*"));
  CHECK(arena("block1*") > arena("block*"));
  // A single layer's only result is the scope's output: there is nothing to recompute.
  CHECK(recomputed(plan_of(deep_mlp, {512, 64}, "block?/a")) == 0);
}

TEST_CASE("values that are computed again keep their names, which their noise is keyed on") {
  const step::StepGraph graph = step_graph(resnet20, {4, 32, 32, 3}, "layer?/?");
  const graph::Ir& ir = graph.ir;
  std::size_t checked = 0;
  for (std::size_t i = 0; i < ir.nodes.size(); ++i) {
    const graph::Node& node = ir.nodes[i];
    for (const graph::ValueId output : node.outputs) CHECK(ir.values[output].producer == i);
    for (const graph::ValueId input : node.inputs) {
      if (ir.values[input].origin == graph::Origin::node) CHECK(ir.values[input].producer < i);
    }
    if (!node.recomputed) continue;
    CHECK(i >= graph.forward_nodes);
    const auto first = std::ranges::find_if(ir.nodes, [&](const graph::Node& other) {
      return !other.recomputed && ir.values[other.outputs[0]].name == ir.values[node.outputs[0]].name;
    });
    REQUIRE(first != ir.nodes.end());
    CHECK(first->op == node.op);
    CHECK(first->scope == node.scope);
    ++checked;
  }
  CHECK(checked > 50);
}

TEST_CASE("a chain of any length is computed again, however small the stack") {
  constexpr int length = 5000;
  const auto chain = [](const Scope& scope, Tensor x) {
    x = models::dense(scope / "block", x, 8);
    for (int i = 0; i < length; ++i) x = tanh(x);
    for (int i = 0; i < length; ++i) x = cast(x, i % 2 == 0 ? DType::f16 : DType::f32);
    return models::dense(scope / "head", x, 10);
  };
  std::ptrdiff_t copies = 0;
  run_with_stack(256 * 1024, [&] {
    const step::StepGraph graph = step_graph(chain, {4, 8}, "block");
    copies = std::ranges::count_if(graph.ir.nodes, &graph::Node::recomputed);
  });
  CHECK(copies > length);
}

TEST_CASE("a pattern that matches no scope is refused") {
  CHECK_THROWS_WITH_AS(step_graph(resnet20, {4, 32, 32, 3}, "block*"),
                       doctest::Contains("a scope that matches 'block*', got none"), Error);
}

}  // namespace halfstep
