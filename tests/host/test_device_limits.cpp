// Devices that are told to have less than they have, shared memory as it follows from a shader and its constants, and
// sizes just below and above what 32-bit indices and one binding can span: lowered for such a device, without a GPU.
#include <halfstep/error.h>
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "models/mlp.h"
#include "passes/backward.h"
#include "plan/layout.h"
#include "plan/program.h"
#include "step/step_program.h"
#include "train/step_graph.h"
#include "vk/device/capabilities.h"
#include "vk/device/limits.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/shaders.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {
namespace {

/// A GPU with ample limits.
vk::Capabilities ample() {
  vk::Capabilities c;
  c.name = "Test GPU";
  c.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  c.limits.maxComputeWorkGroupInvocations = 1024;
  for (std::uint32_t& along : c.limits.maxComputeWorkGroupSize) along = 1024;
  for (std::uint32_t& along : c.limits.maxComputeWorkGroupCount) along = 1u << 20;
  c.limits.maxComputeSharedMemorySize = 65536;
  c.limits.maxPushConstantsSize = 256;
  c.limits.maxStorageBufferRange = 0xFFFFFFFF;
  c.limits.maxPerStageDescriptorStorageBuffers = 64;
  c.limits.maxDescriptorSetStorageBuffers = 64;
  c.limits.maxPerStageResources = 128;
  c.limits.maxTexelBufferElements = 1u << 27;
  c.max_buffer_bytes = std::uint64_t{1} << 40;
  c.subgroup_size = 32;
  c.min_subgroup_size = 8;
  c.max_subgroup_size = 64;
  c.subgroup_size_control = true;
  return c;
}

vk::Capabilities told(const std::string& limits) {
  vk::Capabilities c = ample();
  vk::lower_limits(c, vk::limits_from(limits));
  return c;
}

/// A GPU that binds as much as any can: maxStorageBufferRange has 32 bits.
plan::Target widest_gpu() {
  plan::Target target;
  target.cpu = false;
  target.float16.storage = plan::Storage16::native;
  target.max_invocations = 1024;
  target.shared_memory_bytes = 65536;
  target.max_storage_buffers = 16;
  target.max_storage_range = 0xFFFFFFFF;
  target.wanted_groups = 400;
  return target;
}

/// An operator of `rows` rows of 64 columns.
struct Family {
  std::string name;
  std::function<Tensor(Graph&, std::int64_t rows, DType)> build;
};

/// An operator whose input has the rows, of type `dtype`.
Family of_rows(const char* name, Tensor (*build)(Tensor)) {
  return {name, [build](Graph& graph, std::int64_t rows, DType dtype) {
            return build(graph.input("x", {rows, 64}, dtype));
          }};
}

/// The same of images of one pixel.
Family of_images(const char* name, Tensor (*build)(Graph&, Tensor, DType)) {
  return {name, [build](Graph& graph, std::int64_t rows, DType dtype) {
            return build(graph, graph.input("x", {rows, 1, 1, 64}, dtype), dtype);
          }};
}

std::vector<Family> families() {
  return {of_rows("relu", relu),
          of_rows("sum", [](Tensor x) { return sum(x); }),
          of_rows("mean", [](Tensor x) { return mean(x, {-1}); }),
          of_rows("softmax", [](Tensor x) { return softmax(x); }),
          of_rows("layer_norm", [](Tensor x) { return layer_norm(x); }),
          of_rows("dropout", [](Tensor x) { return dropout(x, 0.5F); }),
          of_rows("transpose", [](Tensor x) { return transpose(x); }),
          of_rows("reshape",
                  [](Tensor x) {
                    return relu(reshape(x, {-1, 32}));
                  }),
          of_rows("slice",
                  [](Tensor x) {
                    return slice(x, {0, 1}, {x.dim(0), 62});
                  }),
          of_rows("concat",
                  [](Tensor x) {
                    return concat({slice(x, {0, 0}, {1, 64}), x}, 0);
                  }),
          {"linear",
           [](Graph& graph, std::int64_t rows, DType dtype) {
             return linear(graph.input("x", {rows, 64}, dtype), graph.input("w", {64, 5}, dtype));
           }},
          {"embedding",
           [](Graph& graph, std::int64_t rows, DType dtype) {
             return embedding(graph.input("table", {rows, 64}, dtype), graph.input("ids", {3}, DType::u32));
           }},
          {"cross_entropy",
           [](Graph& graph, std::int64_t rows, DType dtype) {
             return cross_entropy(graph.input("x", {rows, 64}, dtype), graph.input("labels", {rows}, DType::u32));
           }},
          {"attention",
           [](Graph& graph, std::int64_t rows, DType dtype) {
             const Tensor q = graph.input("q", {1, 1, 3, 64}, dtype);
             return attention(q, graph.input("k", {1, 1, rows, 64}, dtype), graph.input("v", {1, 1, rows, 64}, dtype));
           }},
          of_images("conv2d",
                    [](Graph& graph, Tensor x, DType dtype) {
                      return conv2d(x, graph.input("w", {1, 1, 64, 3}, dtype));
                    }),
          of_images("max_pool2d", [](Graph&, Tensor x, DType) {
            return max_pool2d(x, {.kernel = {1, 1}});
          })};
}

/// The family's program with the gradients of all its inputs that have any.
plan::Program lowered(const Family& family, std::int64_t rows, DType dtype, const plan::Target& target) {
  Graph graph = graph::Access::graph(std::make_shared<graph::Ir>(graph::Types::settled));
  const Tensor y = family.build(graph, rows, dtype);
  const graph::Ir& ir = graph.ir();
  plan::ProgramBuilder builder(target);
  builder.stores().key_noise(builder.place_bytes("state", 64, {builder.buffer("state"), 0}));
  for (graph::ValueId id = 0; id < ir.values.size(); ++id) {
    const graph::Value& value = ir.values[id];
    if (value.origin != graph::Origin::node) builder.values().bind(id, builder.tensor(value.name, value.type));
  }
  const graph::ValueId wanted[] = {y.id()};
  for (const graph::NodeId node : passes::needed_nodes(ir, wanted)) builder.lower(ir, ir.nodes[node]);
  return builder.finish();
}

void check_indices(const plan::Program& program, const plan::Target& target) {
  for (const plan::Dispatch& dispatch : program.dispatches) {
    CAPTURE(dispatch.shader);
    std::uint64_t invocations = dispatch.constants.empty() ? 1 : dispatch.constants[0];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      CHECK(dispatch.groups[axis] <= target.max_groups[axis]);
      invocations *= dispatch.groups[axis];
    }
    CHECK(invocations <= std::uint64_t{1} << 32);
    for (const plan::Operand& operand : dispatch.operands) {
      const plan::ProgramTensor& tensor = program.tensors[operand.tensor];
      CHECK(tensor.bytes / static_cast<std::uint64_t>(bytes(tensor.type.dtype)) < plan::elements_end);
    }
    for (const plan::BoundPart& part : plan::bound_parts(program, dispatch)) {
      CHECK(part.bytes <= target.max_storage_range);
      CHECK(part.bytes > 0);
    }
  }
}

}  // namespace

TEST_CASE("a device told to have less has that, and the plan's target follows") {
  const vk::Capabilities c = told(
      "invocations=128,groups=100,shared_memory=16384,storage_buffers=4,storage_range=65536,buffer_bytes=1048576,"
      "push_bytes=128,loop_rounds=100,texels=65536,subgroup_size=0");
  const plan::Target target = vk::target(c, vk::settings({}));
  CHECK(target.max_invocations == 128);
  CHECK(target.max_groups == std::array<std::uint32_t, 3>{100, 100, 100});
  CHECK(target.shared_memory_bytes == 16384);
  CHECK(target.max_storage_buffers == 4);
  CHECK(target.max_storage_range == 65536);
  CHECK(target.max_push_bytes == 128);
  CHECK(target.max_rounds == 100);
  CHECK(target.subgroups.size == 0);
  CHECK(c.max_buffer_bytes == 1048576);
  CHECK(c.limits.maxTexelBufferElements == 65536);
  CHECK(vk::target(ample(), vk::settings({})).subgroups.size == 32);
  CHECK(vk::target(told("subgroup_size=8"), vk::settings({})).subgroups.size == 8);
  CHECK(vk::target(told("subgroup_size=64"), vk::settings({})).subgroups.size == 64);
  CHECK(vk::target(told(""), vk::settings({})).max_invocations == 1024);
}

TEST_CASE("storage buffers leave room for the three uniform buffers of what stores f16") {
  vk::Capabilities c = ample();
  CHECK(vk::target(c, vk::settings({})).max_storage_buffers == 64);
  c.limits.maxPerStageResources = 20;
  CHECK(vk::target(c, vk::settings({})).max_storage_buffers == 17);
}

TEST_CASE("limits that cannot be had are refused") {
  const auto refused = [](const std::string& limits, const char* why) {
    CAPTURE(limits);
    CHECK_THROWS_WITH_AS(told(limits), doctest::Contains(why), Error);
  };
  refused("threads=4",
          "[device] expected limits among buffer_bytes, groups, invocations, loop_rounds, memory, push_bytes, ");
  refused("invocations=128,,groups=100", ", got ''");
  refused("invocations", "expected the limit invocations to be 128 or more, got ''");
  refused("invocations=many", "expected the limit invocations to be 128 or more, got 'many'");
  refused("invocations=64", "expected the limit invocations to be 128 or more, got '64'");
  refused("invocations=128 ", "expected the limit invocations to be 128 or more, got '128 '");
  refused("groups=100,groups=100", "expected each limit once, got groups twice");
  refused("invocations=1025", "expected the limit invocations to be at most 1024, which Test GPU has, got 1025");
  refused("subgroup_size=128",
          "expected the limit subgroup_size to be 0 or a size that Test GPU has (32, or 8 to 64), got 128");
  refused("subgroup_size=12", "expected the limit subgroup_size to be 0 or");
}

TEST_CASE("shared memory follows from a shader and its constants") {
  // Two operands of 16 k by a tile's side plus one quad, as gemm_kernels.cpp counts it.
  const auto bytes = [](std::string_view shader, const vk::Constants& constants = {}) {
    return vk::variable_bytes(vk::find_shader(shader).words, constants).shared;
  };
  CHECK(bytes("gemm.row_row.f32.tile32") == 2 * 16 * 9 * 16);
  CHECK(bytes("gemm.row_row.f32.tile64") == 2 * 16 * 17 * 16);
  CHECK(bytes("gemm.row_row.f32.tile128") == 2 * 16 * 33 * 16);
  CHECK(bytes("copy") == 0);
  CHECK(bytes("row_mean") == 256 * 8);
}

TEST_CASE("up to 2^31 elements indices stay within 32 bits, and more is refused by name") {
  constexpr auto rows = static_cast<std::int64_t>(plan::elements_end) / 64;
  for (const Family& family : families()) {
    CAPTURE(family.name);
    for (const DType dtype : {DType::f32, DType::f16}) {
      CAPTURE(name(dtype));
      for (const std::uint64_t range : {std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 27}) {
        plan::Target target = widest_gpu();
        target.max_storage_range = range;
        target.max_storage_buffers = 1000;
        const std::int64_t most = (rows - 2) / 4 * 4;  // one result has a row more, and one has rows as columns
        check_indices(lowered(family, most, dtype, target), target);
        CHECK_THROWS_WITH_AS(lowered(family, rows + 1, dtype, target), doctest::Contains("2^31"), Error);
        target.max_storage_range = std::uint64_t{1} << 27;
        target.max_storage_buffers = 16;
        CHECK_THROWS_WITH_AS(lowered(family, most, dtype, target),
                             doctest::Contains("expected at most 16 storage buffers, the device's limit, got "), Error);
      }
    }
  }
}

TEST_CASE("sizes that 32 or 64 bits would wrap are refused") {
  for (const Family& family : families()) {
    CAPTURE(family.name);
    for (const int bits : {26, 31, 32, 33, 48, 54, 56}) {
      CAPTURE(bits);
      const std::int64_t rows = (std::int64_t{1} << bits) + 1;
      CHECK_THROWS_AS(lowered(family, rows, DType::f16, widest_gpu()), Error);
      CHECK_THROWS_AS(lowered(family, rows, DType::f32, widest_gpu()), Error);
    }
  }
  CHECK_THROWS_AS(plan::layout({std::int64_t{1} << 61, 1}), Error);  // four elements for each
  CHECK_THROWS_AS(plan::groups_for(widest_gpu(), std::int64_t{1} << 33, 64), Error);
}

TEST_CASE("parameters of more than a binding and than 4 GiB are updated in parts, without gaps") {
  Graph graph;
  const Tensor images = graph.input("images", {2, 4096});
  const Tensor labels = graph.input("labels", {2}, DType::u32);
  const std::vector<std::int64_t> hidden(70, 4096);  // 64 MiB each
  const TrainerOptions options{.loss = cross_entropy(models::mlp(graph.root(), images, hidden), labels),
                               .optimizer = Adam{},
                               .clip_norm = 1,
                               .precision = Precision::float32(),
                               .feed = Feed{.samples = images, .labels = labels}};
  const step::StepGraph step_graph = train::training_graph(graph, options);
  const state::StoreLayout layout = step::layout_of(step_graph);
  plan::Target target = widest_gpu();
  target.max_storage_range = std::uint64_t{1} << 27;
  const plan::Program program = step::training_program(target, step_graph, layout, options, {}).plan.program;
  check_indices(program, target);
  CHECK(layout.parameters.padded_elements() * 4 > std::uint64_t{1} << 32);
  for (const char* stage : {"check", "squares", "update"}) {
    CAPTURE(stage);
    std::uint64_t next = 0;
    for (const plan::Dispatch& dispatch : program.dispatches) {
      if (dispatch.label != stage) continue;
      const plan::Operand* gradients = nullptr;
      for (const plan::Operand& operand : dispatch.operands) {
        if (program.tensors[operand.tensor].name == "gradients") gradients = &operand;
      }
      REQUIRE(gradients != nullptr);
      const plan::ProgramTensor& part = program.tensors[gradients->tensor];
      CHECK(part.region.offset == next);
      next += part.bytes;
    }
    CHECK(next == layout.parameters.padded_elements() * 4);
  }
}

TEST_CASE("a gradient of hash_grid's positions counts the loop rounds of every quad of features") {
  const auto gradient = [](std::int64_t features) {
    const HashGridOptions options{.levels = 1, .features = features, .log2_hashmap_size = 6, .base_resolution = 2};
    return Family{"hash_grid", [=](Graph& graph, std::int64_t rows, DType dtype) {
                    const Tensor x = graph.input("x", {rows, 4});
                    const Tensor table = graph.input("table", {hash_grid_size(4, options)}, dtype);
                    const Tensor loss = sum(hash_grid(x, table, options)), seed = graph.input("seed", {}, dtype);
                    const graph::ValueId wanted[] = {x.id()};
                    graph::Ir& ir = graph::ir_of(loss);
                    return ir.tensor(passes::add_backward(ir, loss.id(), seed.id(), wanted).front());
                  }};
  };
  plan::Target target = widest_gpu();
  target.max_rounds = 30;  // 16 vertices once, not twice
  CHECK_NOTHROW(lowered(gradient(4), 5, DType::f32, target));
  CHECK_THROWS_WITH_AS(lowered(gradient(8), 5, DType::f32, target), doctest::Contains("at most 30 loop rounds"), Error);
}

TEST_CASE("where subgroups have several sizes, workgroups are of whole ones of the size that is requested") {
  vk::Capabilities c = ample();
  c.max_subgroups_per_group = 16;
  plan::Dispatch dispatch;
  dispatch.label = dispatch.shader = "snake";
  const auto asks = [&](std::uint32_t local_size, bool uses_subgroups = true) {
    vk::ShaderFacts facts;
    facts.uses_subgroups = uses_subgroups;
    facts.local_size = {local_size, 1, 1};
    return vk::asks_for_subgroups(dispatch, facts, c);
  };
  CHECK(asks(64));
  CHECK_FALSE(asks(48, false));
  for (const std::uint32_t local_size : {1U, 16U, 48U}) {
    CHECK_THROWS_WITH_AS(
        asks(local_size),
        doctest::Contains(fmt::format("[snake] expected workgroups of whole subgroups of 32 for snake, got {} "
                                      "invocations. Hint: a local_size that is a multiple",
                                      local_size)
                              .c_str()),
        Error);
  }
  CHECK_THROWS_WITH_AS(asks(544), doctest::Contains("at most 512 invocations in full subgroups"), Error);
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 8;
  CHECK(asks(16));
  CHECK_FALSE(asks(12));
  CHECK_FALSE(asks(136));
}

}  // namespace halfstep
