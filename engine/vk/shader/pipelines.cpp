#include "vk/shader/pipelines.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "vk/device/create.h"
#include "vk/device/float_controls.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"
#include "vk/device/workarounds.h"
#include "vk/shader/application_kernels.h"
#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/first_group.h"
#include "vk/shader/half_conversions.h"
#include "vk/shader/matrix_types.h"
#include "vk/shader/mixed_dots.h"
#include "vk/shader/pair_access.h"
#include "vk/shader/pushed_numbers.h"
#include "vk/shader/shaders.h"
#include "vk/shader/specialize.h"
#include "vk/shader/spirv.h"
#include "vk/shader/subgroup_ids.h"
#include "vk/shader/texel_reads.h"
#include "vk/shader/variable_bytes.h"
#include "vk/shader/windows.h"

namespace halfstep::vk {
namespace {

void at_most(const plan::Dispatch& dispatch, std::string_view what, std::uint64_t limit, std::uint64_t got) {
  if (got <= limit) return;
  fail(dispatch.label,
       fmt::format("expected {} to take at most {} {}, the device's limit, got {}", dispatch.shader, limit, what, got));
}

void check_limits(const plan::Dispatch& dispatch, const ShaderFacts& facts, const Context& context) {
  const VkPhysicalDeviceLimits& limits = context.capabilities().limits;
  const auto [x, y, z] = facts.local_size;
  at_most(dispatch, "invocations in a workgroup", limits.maxComputeWorkGroupInvocations, std::uint64_t{x} * y * z);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const char name = "xyz"[axis];
    at_most(dispatch, fmt::format("invocations along {}", name), limits.maxComputeWorkGroupSize[axis],
            facts.local_size[axis]);
    at_most(dispatch, fmt::format("workgroups along {}", name), limits.maxComputeWorkGroupCount[axis],
            dispatch.groups[axis]);
  }
  at_most(dispatch, "bytes of push constants", limits.maxPushConstantsSize, plan::pushed_bytes(dispatch));
  at_most(dispatch, "storage buffers", context.target().max_storage_buffers, plan::bindings(dispatch));
  if (facts.uses_subgroups && context.target().subgroups.size == 0) {
    fail(ErrorCode::unsupported, dispatch.label,
         fmt::format("expected a device whose subgroups are known to have one size for {}, got {}", dispatch.shader,
                     context.capabilities().name));
  }
}

/// Whether workgroups are whole subgroups along x.
bool has_whole_subgroups(const ShaderFacts& facts, const plan::Target& target) {
  const auto [x, y, z] = facts.local_size;
  return target.subgroups.size != 0 && x % target.subgroups.size == 0 && y == 1 && z == 1;
}

/// The code in the forms that the driver executes faster.
std::vector<std::uint32_t> with_faster_forms(std::vector<std::uint32_t> code, const ShaderFacts& facts,
                                             const Context& context) {
  const Capabilities& capabilities = context.capabilities();
  if (divides_for_local_ids(capabilities) && has_whole_subgroups(facts, context.target()))
    code = with_subgroup_ids(code);
  return moves_pairs_faster(capabilities) ? with_pair_access(code) : code;
}

class ShaderModule {
 public:
  ShaderModule(Context& context, std::span<const std::uint32_t> words) : context_(context) {
    auto info = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    info.codeSize = words.size_bytes();
    info.pCode = words.data();
    module_ = create(context, context.table().vkCreateShaderModule, info, "vkCreateShaderModule");
  }
  ~ShaderModule() { context_.table().vkDestroyShaderModule(context_.device(), module_, context_.allocator()); }
  ShaderModule(const ShaderModule&) = delete;
  ShaderModule& operator=(const ShaderModule&) = delete;

  VkShaderModule handle() const { return module_; }

 private:
  Context& context_;
  VkShaderModule module_ = VK_NULL_HANDLE;
};

SetBindings bindings_of(const plan::Dispatch& dispatch) {
  SetBindings set{.bindings = static_cast<std::uint32_t>(plan::bindings(dispatch))};
  for (std::uint32_t i = 0; i < dispatch.operands.size(); ++i) {
    if (dispatch.operands[i].texels) set.texels |= 1U << i;
  }
  return set;
}

/// Which of the first 32 operands may be texel buffers.
std::uint32_t may_be_texels_of(const plan::Dispatch& dispatch) {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(dispatch.operands.size(), 32); ++i) {
    if (dispatch.operands[i].may_be_texels && !dispatch.operands[i].texels && !dispatch.spirv) found |= 1U << i;
  }
  return found;
}

/// Whether the driver rounds to f16: not in a kernel with float controls of its own, to which those that make its
/// rounding known are not added.
bool rounds_by_driver(const plan::Dispatch& dispatch) {
  return dispatch.rounded_by_driver && !(dispatch.spirv && has_float_controls(*dispatch.spirv));
}

/// Constants in the structures that Vulkan needs.
class Specialization {
 public:
  explicit Specialization(const Constants& constants) {
    for (const auto& [id, value] : constants) {
      entries_.push_back({id, static_cast<std::uint32_t>(values_.size() * sizeof value), sizeof value});
      values_.push_back(value);
    }
  }

  VkSpecializationInfo info() const {
    return {static_cast<std::uint32_t>(entries_.size()), entries_.data(), values_.size() * sizeof(values_[0]),
            values_.data()};
  }

 private:
  std::vector<VkSpecializationMapEntry> entries_;
  std::vector<std::uint32_t> values_;
};

/// The shader as compiled for this device.
std::vector<std::uint32_t> code_for(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words,
                                    const ShaderFacts& facts, const Capabilities& capabilities) {
  if (facts.needs_float16 && !capabilities.float16_arithmetic) {
    fail(ErrorCode::unsupported, dispatch.label,
         fmt::format("expected a device with f16 arithmetic (shaderFloat16) for {}, got {}", dispatch.shader,
                     capabilities.name));
  }
  std::vector<std::uint32_t> code{words.begin(), words.end()};
  if (dispatch.push_is_known) {
    const auto first = static_cast<std::uint32_t>(plan::pushed_bytes(dispatch) - dispatch.push.size());
    code = with_pushed_numbers(code, first, dispatch.push);
  }
  if (rounds_by_driver(dispatch) && promises_rounding(capabilities)) code = with_half_conversions(code);
  code = with_matrices_of(dispatch.matrices, code);
  if (capabilities.mixed_dots && !dispatch.reproducible && !dispatch.spirv) code = with_mixed_dots(code);
  if (dispatch.reproducible) code = with_exact_arithmetic(code, dispatch.shader);
  if (!dispatch.reproducible && !capabilities.unpacks_halves) code = with_exact_unpacking(code);
  if (!dispatch.windows.operands.empty()) code = with_windows(code, dispatch.windows, dispatch.shader);
  return with_float_controls(code, capabilities);  // the last that brings types of floats
}

}  // namespace

Constants constants_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader) {
  constexpr std::uint32_t stochastic_id = first_storing_constant;
  constexpr std::uint32_t saturate_id = 101;
  constexpr std::uint32_t scaled_id = 102;
  constexpr std::uint32_t driver_rounds_id = 103;
  constexpr std::uint32_t is_bf16_id = 104;
  constexpr std::uint32_t is_float8_id = 105;
  Constants constants;
  for (std::uint32_t i = 0; i < dispatch.constants.size(); ++i) constants[i] = dispatch.constants[i];
  constants[stochastic_id] = dispatch.storing.stochastic ? 1 : 0;
  constants[saturate_id] = dispatch.storing.saturate ? 1 : 0;
  constants[scaled_id] = dispatch.storing.scaled ? 1 : 0;
  constants[is_bf16_id] = shader.bf16 || dispatch.matrices == plan::MatrixType::bfloat16 ? 1 : 0;
  if (dispatch.matrices == plan::MatrixType::float8) constants[is_float8_id] = 1;
  constants[driver_rounds_id] = rounds_by_driver(dispatch) ? 1 : 0;
  return constants;
}

bool asks_for_subgroups(const plan::Dispatch& dispatch, const ShaderFacts& facts, const Capabilities& c) {
  if (!facts.uses_subgroups || !c.subgroup_size_control) return false;
  const bool varies = c.min_subgroup_size != c.max_subgroup_size;
  const auto [x, y, z] = facts.local_size;
  if (x % c.subgroup_size != 0) {
    if (!varies) return false;
    fail(ErrorCode::unsupported, dispatch.label,
         fmt::format("expected workgroups of whole subgroups of {} for {}, got {} invocations", c.subgroup_size,
                     dispatch.shader, x),
         "a local_size that is a multiple");
  }
  const std::uint64_t size = std::uint64_t{x} * y * z;
  const std::uint64_t limit = std::uint64_t{c.subgroup_size} * c.max_subgroups_per_group;
  if (varies) at_most(dispatch, "invocations in full subgroups", limit, size);
  return size <= limit;
}

Pipelines::Pipelines(Context& context, Capture capture)
    : context_(context.shared_from_this()),
      own_pool_(capture == Capture::no ? nullptr : std::make_unique<PipelinePool>(context)),
      pool_(own_pool_ ? *own_pool_ : context.pipeline_pool()) {
  if (capture == Capture::no) return;
  if (!context.capabilities().pipeline_executables) {
    fail(ErrorCode::unsupported, "pipelines",
         fmt::format("expected a driver with VK_KHR_pipeline_executable_properties, got {}, which has none",
                     context.info().driver));
  }
  flags_ = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
}

Pipelines::~Pipelines() {
  pool_.save();
}

const Pipeline& Pipelines::get(const plan::Dispatch& dispatch, Start start) {
  const EmbeddedShader shader =
      dispatch.spirv ? EmbeddedShader{dispatch.shader, *dispatch.spirv} : find_shader(dispatch.shader);
  check_limits(dispatch, shader_facts(shader.words, dispatch.constants), *context_);
  const PipelineKey key{.shader = dispatch.shader,
                        .spirv = dispatch.spirv ? *dispatch.spirv : std::vector<std::uint32_t>{},
                        .constants = dispatch.constants,
                        .how = {dispatch.storing.stochastic, dispatch.storing.saturate, dispatch.storing.scaled,
                                dispatch.reproducible, dispatch.rounded_by_driver},
                        .matrices = dispatch.matrices,
                        .push_bytes = static_cast<std::uint32_t>(plan::pushed_bytes(dispatch)),
                        .push = dispatch.push_is_known ? dispatch.push : std::vector<std::byte>{},
                        .set = bindings_of(dispatch),
                        .may_be_texels = may_be_texels_of(dispatch),
                        .windows = dispatch.windows,
                        .any_start = start == Start::any,
                        .patches = shader_patches(),
                        .rounds = patches_rounds() ? dispatch.rounds : 0};
  std::shared_ptr<const Pipeline> pipeline = pool_.find(key);
  if (!pipeline) pipeline = pool_.add(key, make(dispatch, shader, key));
  return **used_.insert(std::move(pipeline)).first;
}

bool Pipelines::is_cancelled() const {
  try {
    return cancel_ && cancel_();
  } catch (...) {
    throw AskFailed{std::current_exception()};
  }
}

Pipeline Pipelines::make(const plan::Dispatch& dispatch, const EmbeddedShader& shader, const PipelineKey& key) {
  if (is_cancelled()) fail(ErrorCode::cancelled, "trainer", "cancelled before all kernels were compiled");
  const Constants constants = constants_of(dispatch, shader);
  if (dispatch.spirv) check_application_kernel(dispatch, constants, *context_);
  std::vector<std::uint32_t> words = words_of(dispatch, shader, constants);
  SetBindings set = key.set;
  if (key.may_be_texels != 0) {
    const std::uint32_t texels = key.may_be_texels & quad_reads(words);
    words = with_texel_reads(words, texels);
    set.texels |= texels;
  }
  const VariableBytes declared = variable_bytes(words, constants);
  at_most(dispatch, "bytes of shared memory", context_->capabilities().limits.maxComputeSharedMemorySize,
          declared.shared);
  if (key.push_bytes < declared.pushed) {
    fail(dispatch.label, fmt::format("expected the {} bytes of push constants that {} declares, got {}",
                                     declared.pushed, dispatch.shader, key.push_bytes));
  }
  const ShaderFacts facts = shader_facts(words, dispatch.constants);
  if (dispatch.operands.size() < facts.bindings) {
    fail(dispatch.label, fmt::format("expected an operand for each of the {} bindings of {}, got {}", facts.bindings,
                                     dispatch.shader, dispatch.operands.size()));
  }
  if (dispatch.storing.scaled && !facts.has_storing_set) {
    fail(dispatch.label, fmt::format("expected a kernel that can scale what it stores, got {}", dispatch.shader));
  }
  const std::uint32_t first_group = key.any_start ? plan::first_group_bytes : 0;
  Pipeline made;
  made.set_layout = pool_.set_layout(set);
  if (facts.has_storing_set) made.storing_layout = pool_.set_layout(storing_bindings);
  if (key.any_start) made.first_group_at = key.push_bytes;
  made.layout = pool_.layout(set, key.push_bytes + first_group, facts.has_storing_set);
  made.bindings = set.bindings;
  made.texels = set.texels;
  made.push_bytes = key.push_bytes;
  made.handle = compile(dispatch, words, facts, constants, made);
  return made;
}

/// Kernels with an expression are specialized here, all others by the driver.
std::vector<std::uint32_t> Pipelines::words_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader,
                                               const Constants& constants) {
  if (!dispatch.expression) return {shader.words.begin(), shader.words.end()};
  const auto bindings = static_cast<std::uint32_t>(dispatch.operands.size());
  return with_bindings(pool_.kernels().get(shader, constants), bindings);
}

VkPipeline Pipelines::compile(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words,
                              const ShaderFacts& facts, const Constants& constants, const Pipeline& made) {
  std::vector<std::uint32_t> code = code_for(dispatch, words, facts, context_->capabilities());
  if (!dispatch.spirv) code = with_faster_forms(code, facts, *context_);
  if (made.first_group_at != 0) code = with_first_group(code, made.first_group_at);
  const ShaderModule module(*context_, patched(dispatch.shader, std::move(code), dispatch.rounds));
  const Specialization specialization(dispatch.reproducible ? with_exact_constants(words, constants) : constants);
  const VkSpecializationInfo specialized = specialization.info();
  auto size = structure<VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT);
  size.requiredSubgroupSize = context_->target().subgroups.size;
  auto info = structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.flags = flags_;
  info.layout = made.layout;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.handle();
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = specialized.mapEntryCount == 0 ? nullptr : &specialized;
  if (asks_for_subgroups(dispatch, facts, context_->capabilities())) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    info.stage.pNext = &size;
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(context_->table().vkCreateComputePipelines(context_->device(), pool_.cache(), 1, &info, context_->allocator(),
                                                   &pipeline),
        fmt::format("vkCreateComputePipelines for {} ({})", dispatch.label, dispatch.shader));
  context_->name(VK_OBJECT_TYPE_PIPELINE, pipeline, dispatch.shader);
  return pipeline;
}

}  // namespace halfstep::vk
