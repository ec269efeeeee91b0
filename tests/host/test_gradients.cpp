#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "graph/ir.h"
#include "passes/backward.h"
#include "plan/program.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {
namespace {

/// An operator applied to inputs, with the tensors that need a gradient.
struct Example {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>&, Tensor labels)> build;
};

using Inputs = const std::vector<Tensor>&;

std::vector<Example> examples() {
  return {
      {"matmul", {{5, 7}, {7, 3}}, [](Inputs x, Tensor) { return matmul(x[0], x[1]); }},
      {"matmul, batches",
       {{2, 7, 5}, {2, 3, 7}},
       [](Inputs x, Tensor) {
         return matmul(x[0], x[1], {true, true});
       }},
      {"linear", {{6, 5}, {5, 3}, {3}}, [](Inputs x, Tensor) { return linear(x[0], x[1], x[2]); }},
      {"conv2d",
       {{2, 7, 7, 3}, {3, 3, 3, 5}, {5}},
       [](Inputs x, Tensor) {
         return conv2d(x[0], x[1], {.stride = {2, 2}, .padding = {1, 1}}, x[2]);
       }},
      {"conv2d, groups",
       {{2, 5, 5, 4}, {3, 3, 2, 6}},
       [](Inputs x, Tensor) { return conv2d(x[0], x[1], {.groups = 2}); }},
      {"bias", {{2, 3, 5}, {5}}, [](Inputs x, Tensor) { return bias(x[0], x[1]); }},
      {"relu", {{7, 3}}, [](Inputs x, Tensor) { return relu(x[0]); }},
      {"sigmoid", {{7, 3}}, [](Inputs x, Tensor) { return sigmoid(x[0]); }},
      {"tanh", {{7, 3}}, [](Inputs x, Tensor) { return tanh(x[0]); }},
      {"relu6", {{7, 3}}, [](Inputs x, Tensor) { return relu6(x[0]); }},
      {"leaky_relu", {{7, 3}}, [](Inputs x, Tensor) { return leaky_relu(x[0]); }},
      {"silu", {{7, 3}}, [](Inputs x, Tensor) { return silu(x[0]); }},
      {"hardswish", {{7, 3}}, [](Inputs x, Tensor) { return hardswish(x[0]); }},
      {"dropout", {{7, 3}}, [](Inputs x, Tensor) { return dropout(x[0], 0.5F); }},
      {"max_pool2d", {{2, 5, 6, 3}}, [](Inputs x, Tensor) { return max_pool2d(x[0]); }},
      {"average_pool2d", {{2, 5, 6, 3}}, [](Inputs x, Tensor) { return average_pool2d(x[0]); }},
      {"reshape",
       {{2, 5, 6}},
       [](Inputs x, Tensor) {
         return reshape(x[0], {3, -1});
       }},
      {"add", {{2, 5, 6}, {5, 1}}, [](Inputs x, Tensor) { return add(x[0], x[1]); }},
      {"sub", {{1, 5}, {3, 1}}, [](Inputs x, Tensor) { return sub(x[0], x[1]); }},
      {"mul", {{4, 5}, {}}, [](Inputs x, Tensor) { return mul(x[0], x[1]); }},
      {"div", {{4, 5}, {5}}, [](Inputs x, Tensor) { return div(x[0], add(mul(x[1], x[1]), x[1])); }},
      {"scale", {{4, 5}}, [](Inputs x, Tensor) { return scale(x[0], 3); }},
      {"sum",
       {{4, 5, 3}},
       [](Inputs x, Tensor) {
         return sum(x[0], {0, 2});
       }},
      {"mean", {{4, 500, 3}}, [](Inputs x, Tensor) { return mean(x[0], {1}, true); }},
      {"mse_loss", {{4, 3}, {4, 3}}, [](Inputs x, Tensor) { return mse_loss(x[0], x[1]); }},
      {"l1_loss", {{4, 3}, {4, 3}}, [](Inputs x, Tensor) { return l1_loss(x[0], x[1]); }},
      {"huber_loss", {{4, 3}, {4, 3}}, [](Inputs x, Tensor) { return huber_loss(x[0], x[1]); }},
      {"binary_cross_entropy", {{4, 3}, {4, 3}}, [](Inputs x, Tensor) { return binary_cross_entropy(x[0], x[1]); }},
      {"cross_entropy", {{4, 3}}, [](Inputs x, Tensor labels) { return cross_entropy(x[0], labels); }},
      {"cross_entropy, many rows", {{2000, 30}}, [](Inputs x, Tensor labels) { return cross_entropy(x[0], labels); }}};
}

/// Operators whose kernels have more buffers, shared memory or subgroups.
std::vector<Example> larger_examples() {
  const auto table = [](Inputs x, Tensor labels) { return embedding(x[0], labels); };
  return {
      {"matmul, larger", {{200, 300}, {300, 500}}, [](Inputs x, Tensor) { return matmul(x[0], x[1]); }},
      {"conv2d, larger",
       {{8, 28, 28, 16}, {3, 3, 16, 64}},
       [](Inputs x, Tensor) {
         return relu(conv2d(x[0], x[1], {.padding = {1, 1}}));
       }},
      {"conv2d, depthwise",
       {{2, 8, 8, 16}, {3, 3, 1, 16}},
       [](Inputs x, Tensor) { return conv2d(x[0], x[1], {.groups = 16}); }},
      {"conv2d_transpose", {{2, 5, 5, 4}, {3, 3, 6, 4}}, [](Inputs x, Tensor) { return conv2d_transpose(x[0], x[1]); }},
      {"group_norm", {{4, 5, 5, 6}, {6}, {6}}, [](Inputs x, Tensor) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"layer_norm", {{40, 500}, {500}, {500}}, [](Inputs x, Tensor) { return layer_norm(x[0], x[1], x[2]); }},
      {"rms_norm", {{40, 500}, {500}}, [](Inputs x, Tensor) { return rms_norm(x[0], x[1]); }},
      {"softmax", {{40, 500}}, [](Inputs x, Tensor) { return softmax(x[0]); }},
      {"log_softmax", {{40, 500}}, [](Inputs x, Tensor) { return log_softmax(x[0]); }},
      {"gelu", {{40, 500}}, [](Inputs x, Tensor) { return gelu(x[0]); }},
      {"swiglu", {{40, 500}, {40, 500}}, [](Inputs x, Tensor) { return swiglu(x[0], x[1]); }},
      {"permute",
       {{4, 5, 6, 7}},
       [](Inputs x, Tensor) {
         return permute(x[0], {3, 1, 0, 2});
       }},
      {"concat",
       {{4, 5}, {4, 6}},
       [](Inputs x, Tensor) {
         return concat({x[0], x[1]}, 1);
       }},
      {"slice",
       {{4, 50}},
       [](Inputs x, Tensor) {
         return slice(x[0], {1, 2}, {4, 49});
       }},
      {"embedding", {{40, 50}}, table},
      {"rotary", {{2, 3, 16, 32}}, [](Inputs x, Tensor) { return rotary(x[0]); }},
      {"attention", {{2, 3, 100, 64}, {2, 3, 100, 64}, {2, 3, 100, 64}}, [](Inputs x, Tensor) {
         return attention(x[0], x[1], x[2], {.causal = true});
       }}};
}

/// The example's graph, with the gradients of all its inputs.
struct Differentiated {
  Graph graph = graph::Access::graph(std::make_shared<graph::Ir>(graph::Types::settled));
  std::vector<Tensor> inputs;
  std::vector<graph::ValueId> gradients;
  graph::Ir* ir = nullptr;

  Differentiated(const Example& example, DType dtype) {
    for (const Shape& shape : example.inputs) inputs.push_back(graph.input(fresh_name(), shape, dtype));
    const Tensor labels = graph.input("labels", {example.inputs[0].empty() ? 1 : example.inputs[0][0]}, DType::u32);
    Tensor loss = example.build(inputs, labels);
    if (loss.rank() > 0) loss = sum(loss);
    const Tensor seed = graph.input("seed", {}, loss.dtype());
    ir = &graph::ir_of(loss);
    std::vector<graph::ValueId> ids;
    for (const Tensor& input : inputs) ids.push_back(input.id());
    gradients = passes::add_backward(*ir, loss.id(), seed.id(), ids);
  }

  std::string fresh_name() const { return "input" + std::to_string(inputs.size()); }
};

/// Every kind of target, with minimal sizes.
std::vector<plan::Target> targets() {
  plan::Target packed;
  plan::Target native;
  native.float16.storage = plan::Storage16::native;
  native.max_invocations = 1024;
  native.subgroups.size = 8;
  native.subgroups.shuffle = true;
  plan::Target gpu;
  gpu.cpu = false;
  gpu.float16.storage = plan::Storage16::native;
  gpu.subgroups.size = 32;
  gpu.subgroups.shuffle = true;
  gpu.max_invocations = 1024;
  gpu.wanted_groups = 200;
  plan::Target phone;
  phone.cpu = false;
  return {packed, native, gpu, phone};
}

/// Devices with the least that Vulkan 1.1 requires but for storage buffers, with ample shared memory and invocations,
/// and with every size of subgroups, 0 for one that varies.
std::vector<plan::Target> targets_by_subgroups() {
  std::vector<plan::Target> all;
  for (const std::uint32_t size : {0U, 1U, 4U, 8U, 16U, 32U, 64U, 128U}) {
    for (const bool cpu : {false, true}) {
      for (const bool ample : {false, true}) {
        plan::Target target;
        target.cpu = cpu;
        target.max_storage_buffers = 16;
        target.subgroups = {.size = size, .shuffle = true, .broadcast = true};
        target.matrix_shapes = {{16, 16, 16}, {8, 8, 16}, {16, 8, 16, true}};
        if (ample) {
          target.float16 = {.storage = plan::Storage16::native, .arithmetic = true};
          target.max_invocations = 1024;
          target.shared_memory_bytes = 65536;
          target.uniform_loads = true;
          target.max_texels = 1 << 20;
        }
        all.push_back(std::move(target));
      }
    }
  }
  return all;
}

plan::Program lower(const Differentiated& example, const plan::Target& target) {
  plan::ProgramBuilder builder(target);
  builder.stores().key_noise(builder.place_bytes("state", 64, {builder.buffer("state"), 0}));
  for (graph::ValueId id = 0; id < example.ir->values.size(); ++id) {
    const graph::Value& value = example.ir->values[id];
    if (value.origin != graph::Origin::node) builder.values().bind(id, builder.tensor(value.name, value.type));
  }
  for (const graph::NodeId node : passes::needed_nodes(*example.ir, example.gradients)) {
    builder.lower(*example.ir, example.ir->nodes[node]);
  }
  return builder.finish();
}

void check_dispatch(const plan::Dispatch& dispatch, const plan::Target& target) {
  CAPTURE(dispatch.shader);
  const std::span<const std::uint32_t> words = vk::find_shader(dispatch.shader).words;
  const vk::ShaderFacts facts = vk::shader_facts(words, dispatch.constants);
  // Unused arguments of an expression are bound to existing buffers.
  CHECK((facts.bindings == dispatch.operands.size() ||
         (dispatch.expression && facts.bindings > dispatch.operands.size())));
  const std::uint32_t invocations = facts.local_size[0] * facts.local_size[1] * facts.local_size[2];
  CHECK(invocations <= target.max_invocations);
  vk::Constants constants;
  for (std::uint32_t i = 0; i < dispatch.constants.size(); ++i) constants[i] = dispatch.constants[i];
  CHECK(vk::variable_bytes(words, constants).shared <= target.shared_memory_bytes);
  if (facts.uses_subgroups) {
    REQUIRE(target.subgroups.size != 0);
    CHECK(invocations % target.subgroups.size == 0);
  }
  CHECK(dispatch.operands.size() <= target.max_storage_buffers);
  CHECK(dispatch.push.size() <= target.max_push_bytes);
  CHECK(std::ranges::any_of(dispatch.operands, [](const plan::Operand& o) { return o.access != plan::Access::read; }));
}

std::size_t nodes_added(Tensor (*build)(Tensor)) {
  const Example example{"", {{4, 5}}, [=](Inputs x, Tensor) { return build(x[0]); }};
  const Example nothing{"", {{4, 5}}, [](Inputs x, Tensor) { return x[0]; }};
  return Differentiated(example, DType::f32).ir->nodes.size() - Differentiated(nothing, DType::f32).ir->nodes.size();
}

}  // namespace

TEST_CASE("every operator has a gradient of each input's type, in f32, f16 and bf16") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Differentiated made(example, dtype);
      REQUIRE(made.gradients.size() == example.inputs.size());
      for (std::size_t i = 0; i < made.gradients.size(); ++i) {
        CHECK(made.ir->values[made.gradients[i]].type == TensorType{dtype, example.inputs[i]});
      }
    }
  }
}

TEST_CASE("forward and backward stay within the limits of every kind of device, and bind what their shaders declare") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Differentiated made(example, dtype);
      for (const plan::Target& target : targets()) {
        const plan::Program program = lower(made, target);
        CHECK(!program.dispatches.empty());
        for (const plan::Dispatch& dispatch : program.dispatches) check_dispatch(dispatch, target);
      }
    }
  }
}

TEST_CASE("every size of subgroups, and one that varies, gets kernels that it can run") {
  std::set<std::uint32_t> relied_on;
  std::vector<Example> all = examples();
  std::ranges::move(larger_examples(), std::back_inserter(all));
  for (const Example& example : all) {
    CAPTURE(example.name);
    const Differentiated made(example, DType::f16);
    for (const plan::Target& target : targets_by_subgroups()) {
      CAPTURE(target.subgroups.size);
      CAPTURE(target.cpu);
      for (const plan::Dispatch& dispatch : lower(made, target).dispatches) {
        check_dispatch(dispatch, target);
        const vk::ShaderFacts facts = vk::shader_facts(vk::find_shader(dispatch.shader).words, dispatch.constants);
        if (facts.uses_subgroups) relied_on.insert(target.subgroups.size);
      }
    }
  }
  for (const std::uint32_t size : {4U, 8U, 16U, 32U, 64U}) CHECK(relied_on.contains(size));
}

TEST_CASE("no dispatch reads what was not written before") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    const Differentiated made(example, DType::f16);
    for (const plan::Target& target : targets()) {
      const plan::Program program = lower(made, target);
      std::set<plan::TensorId> known;
      for (plan::TensorId id = 0; id < program.tensors.size(); ++id) {
        const std::string& name = program.tensors[id].name;
        if (name.starts_with("input") || name == "labels" || name == "seed" || name == "state") known.insert(id);
      }
      for (const plan::Dispatch& dispatch : program.dispatches) {
        CAPTURE(dispatch.shader);
        for (const plan::Operand& operand : dispatch.operands) {
          if (operand.access != plan::Access::write) CHECK(known.contains(operand.tensor));
        }
        for (const plan::Operand& operand : dispatch.operands) known.insert(operand.tensor);
      }
    }
  }
}

TEST_CASE("gradients take no more operators than they need") {
  CHECK(nodes_added([](Tensor x) { return relu(x); }) == 2);
  CHECK(nodes_added([](Tensor x) { return scale(x, 2); }) == 2);
  CHECK(nodes_added([](Tensor x) { return add(x, x); }) == 2);  // the sum, and that of its two gradients
  CHECK(nodes_added([](Tensor x) { return reshape(x, x.shape()); }) == 0);
  CHECK(nodes_added([](Tensor x) { return dropout(x, 0); }) == 0);
}

TEST_CASE("a metric cannot be trained on") {
  Graph graph;
  const Tensor logits = graph.root().parameter("logits", {4, 3}, constant(1));
  const Tensor labels = graph.input("labels", {4}, DType::u32);
  const Tensor metric = accuracy(logits, labels);
  const Tensor seed = graph.input("seed", {});
  const graph::ValueId parameters[] = {logits.id()};
  CHECK_THROWS_WITH_AS(passes::add_backward(graph::ir_of(logits), metric.id(), seed.id(), parameters),
                       doctest::Contains("[accuracy] expected an operator with a gradient"), Error);
}

TEST_CASE("a parameter that only comparisons read is an error that says so") {
  Graph graph;
  const Tensor weight = graph.root().parameter("weight", {3}, constant(1));
  const Tensor least = graph.root().parameter("least", {3}, constant(0));
  const Tensor loss = sum(mul(weight, greater(weight, least)));
  const Tensor seed = graph.input("seed", {});
  const graph::ValueId parameters[] = {weight.id(), least.id()};
  CHECK_THROWS_WITH_AS(passes::add_backward(graph::ir_of(loss), loss.id(), seed.id(), parameters),
                       "[backward] expected a gradient for every parameter to train, got none for 'least'. Hint: the "
                       "loss depends on it by operators without a gradient only, such as comparisons: freeze it by a "
                       "group",
                       Error);
}

TEST_CASE("a tensor of more bindings than the device has is an error that names it") {
  Graph graph;
  const Tensor x = graph.input("activations", {1 << 15, 1 << 12});
  const Tensor y = relu(x);
  plan::ProgramBuilder builder{plan::Target{}};
  builder.values().bind(x.id(), builder.tensor("activations", x.type()));
  CHECK_THROWS_WITH_AS(builder.lower(graph.ir(), graph.ir().nodes[0]), doctest::Contains("'relu:0' f32 {32768, 4096}"),
                       Error);
  CHECK(y.shape() == x.shape());
}

}  // namespace halfstep
