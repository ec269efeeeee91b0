// What a driver is given to compile, and asked for with it.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "harness/application.h"
#include "harness/as_gpu.h"
#include "harness/device.h"
#include "step/execution.h"
#include "step/vk_work.h"
#include "vk/device/float_controls.h"
#include "vk/device/loader.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

using namespace halfstep;
using testing::negation;

namespace {

/// The code of y = -x of f16 in words that the driver is given.
std::vector<std::uint32_t> code_of_negation(vk::Context& context) {
  std::vector<std::uint32_t> code;
  vk::patch_shaders([&](std::string_view, const std::vector<std::uint32_t>& words) {
    code = words;
    return words;
  });
  plan::Target target = context.target();
  target.float16.storage = plan::Storage16::packed;
  vk::Pipelines(context).get(negation(target, DType::f16));
  vk::patch_shaders({});
  return code;
}

/// Whether it has the driver widen f16.
bool unpacks_halves(const std::vector<std::uint32_t>& code) {
  constexpr std::uint32_t unpack_half_2x16 = 62;  // of GLSL.std.450
  bool found = false;
  vk::for_each_instruction(code, [&](const vk::Instruction& i) {
    found = found || (i.opcode == vk::op_ext_inst && i.operand(4) == unpack_half_2x16);
  });
  return found;
}

bool limits_patch_shaders() {
  return vk::settings({}).limits.contains("loop_rounds");
}

/// Sizes that pipelines of full subgroups are asked for with; 0 where there is none.
struct Compiled {
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc = nullptr;
  PFN_vkCreateComputePipelines create = nullptr;
  std::vector<std::uint32_t> sizes{};
};

Compiled& compiled() {
  static Compiled all;
  return all;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkPipelineShaderStageCreateInfo& stage = infos[i].stage;
    if ((stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT) == 0) continue;
    const auto* const size = static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT*>(stage.pNext);
    const bool is_size = size != nullptr &&
                         size->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT;
    compiled().sizes.push_back(is_size ? size->requiredSubgroupSize : 0);
  }
  return compiled().create(device, cache, count, infos, allocator, pipelines);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = compiled().get_device_proc(device, name);
  if (std::string_view(name) != "vkCreateComputePipelines") return found;
  compiled().create = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&create_pipelines);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = compiled().get_proc(instance, name);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return found;
  compiled().get_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&device_function);
}

}  // namespace

TEST_CASE("pipelines: kernels ask for the modes of floats that the device has") {
  if (limits_patch_shaders()) return;
  vk::Context& context = testing::context();
  const std::vector<std::uint32_t> code = code_of_negation(context);
  CHECK(unpacks_halves(code) == context.capabilities().unpacks_halves);
  CHECK(vk::with_float_controls(code, context.capabilities()) == code);
  if (context.capabilities().float32.preserves_denormals) CHECK(vk::has_float_controls(code));
}

TEST_CASE("pipelines: kernels for a GPU that does not promise to keep subnormals widen f16 by integers") {
  if (limits_patch_shaders()) return;
  const testing::AsGpu as_gpu;
  testing::Application application;
  const Device device = Device::adopt(application.handles());
  CHECK_FALSE(vk::context_of(device).capabilities().unpacks_halves);
  CHECK_FALSE(unpacks_halves(code_of_negation(vk::context_of(device))));
}

TEST_CASE("pipelines: kernels that use subgroups are compiled for the size that plans rely on") {
  testing::device();  // is opened without this
  compiled().get_proc = vk::load_global().get_proc;
  compiled().sizes.clear();
  vk::replace_loader(&instance_function);
  {
    const Device device = Device::open(testing::device().info().name, {.may_fork = false});
    vk::Context& context = vk::context_of(device);
    Graph graph = testing::settled_graph();
    const Tensor y = matmul(graph.input("a", {64, 64}), graph.input("b", {64, 64}));
    step::ExecutionOptions options;
    options.target = context.target();
    const step::Execution execution(context, graph.ir(), {y.id()}, options);
    const std::uint32_t wanted = context.target().subgroups.size;
    CHECK(std::ranges::all_of(compiled().sizes, [&](std::uint32_t size) { return size == wanted; }));
    const bool asks = std::ranges::any_of(execution.plan().program.dispatches, [&](const plan::Dispatch& dispatch) {
      const vk::ShaderFacts facts = vk::shader_facts(vk::find_shader(dispatch.shader).words, dispatch.constants);
      return vk::asks_for_subgroups(dispatch, facts, context.capabilities());
    });
    CHECK(compiled().sizes.empty() == !asks);
  }
  vk::replace_loader(nullptr);
}
