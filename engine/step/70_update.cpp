#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "step/update.h"

namespace halfstep::step {
namespace {

namespace buffers = state::buffers;

/// Where the states of a chunk lie among those of all parameters, counted in quads.
std::uint64_t first_moment(const state::ParameterRun& run, const Chunk& chunk) {
  return run.first_moment / 4 + (chunk.first - run.first_element / 4) * run.training.states;
}

/// The push constants of an update kernel: three words, then the rule's numbers.
std::vector<std::byte> push_of(const state::ParameterRun& run, const Chunk& chunk, const std::vector<float>& numbers) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(chunk.first), static_cast<std::uint32_t>(chunk.count),
                                 static_cast<std::uint32_t>(first_moment(run, chunk))};
  std::vector<std::byte> push(sizeof words + numbers.size() * sizeof(float));
  std::memcpy(push.data(), words, sizeof words);
  std::ranges::copy(std::as_bytes(std::span(numbers)), push.begin() + sizeof words);
  return push;
}

/// The SPIR-V that an application brought for a storage type; null where the kernel is the library's.
std::shared_ptr<const std::vector<std::uint32_t>> spirv_of(const UpdateKernel& kernel, std::string_view storage) {
  if (kernel.spirv.empty()) return nullptr;
  const auto found = kernel.spirv.find(std::string(storage));
  if (found == kernel.spirv.end()) {
    std::vector<std::string> types;
    for (const auto& [type, words] : kernel.spirv) types.push_back(type);
    fail("optimizer", fmt::format("expected SPIR-V of {} for the storage type {}, got {}", kernel.shader, storage,
                                  fmt::join(types, ", ")));
  }
  return std::make_shared<const std::vector<std::uint32_t>>(found->second);
}

plan::TensorId place(const StageContext& step, const char* name, plan::BufferId buffer, const Chunk& quads,
                     DType dtype) {
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(dtype));
  return step.builder.place_bytes(name, quads.count * quad_bytes, {buffer, quads.first * quad_bytes});
}

/// Bindings that a variant of the kernel does not use are given the gradients: a buffer must be bound all the same.
std::vector<plan::Operand> operands(const StageContext& step, const state::ParameterRun& run, const Update& update) {
  const state::WeightStorage& weights = step.weights;
  const Chunk& chunk = update.quads;
  const plan::Operand gradients{step.gradients(chunk), plan::Access::read};
  std::vector<plan::Operand> result{{step.state, plan::Access::read}, gradients, gradients, gradients, gradients};
  if (weights.master) {
    const Chunk masters{update.first_master, chunk.count};
    result[2] = {place(step, "masters", step.updated_weights(), masters, DType::f32), plan::Access::read_write};
  }
  if (weights.copy || !weights.master) {
    result[3] = {place(step, "weights", buffers::weights, chunk, weights.compute), plan::Access::read_write};
  }
  if (run.training.states > 0) {
    const Chunk moments{update.first_moment, chunk.count * run.training.states};
    result[4] = {place(step, "moments", buffers::moments, moments, weights.moments), plan::Access::read_write};
  }
  result.push_back(read_blocks(step, gradients.tensor));
  return result;
}

void update_by_kernel(const StageContext& step, const state::ParameterRun& run, const UpdateRule& rule) {
  const UpdateKernel kernel = rule.kernel({.rate = run.training.rate,
                                           .weight_decay = run.training.weight_decay,
                                           .scale_in_rate = step.options.precision.loss_scale.in_rate});
  std::vector<plan::BufferId> bound{buffers::gradients, buffers::weights, step.updated_weights()};
  if (run.training.states > 0) bound.push_back(buffers::moments);
  for (const Update& update : step.updates(run, bound)) {
    step.builder.dispatch(update_dispatch(step, run, update, kernel));
  }
}

}  // namespace

plan::Dispatch update_dispatch(const StageContext& step, const state::ParameterRun& run, const Update& update,
                               const UpdateKernel& kernel) {
  const Chunk& chunk = update.quads;
  const Precision& precision = step.options.precision;
  const state::WeightStorage& weights = step.weights;
  const std::string_view storage = plan::storage(step.builder.target(), weights.compute);
  const std::uint32_t local_size = flat_local_size(step.builder.target());
  std::vector<std::uint32_t> constants{local_size,
                                       weights.master,
                                       weights.copy,
                                       is_narrow(weights.moments),
                                       precision.rounding.optimizer == Rounding::stochastic,
                                       weights.scaled,
                                       run.training.optimizer};
  constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
  plan::Storing storing;
  if (is_narrow(weights.compute)) {
    storing = {.stochastic = precision.rounding.weights == Rounding::stochastic,
               .saturate = precision.overflow == Overflow::saturate,
               .streams = {state::weight_rounding_stream}};
  }
  return {.label = "update",
          .shader = fmt::format("{}.{}", kernel.shader, storage),
          .constants = std::move(constants),
          .push = push_of(run, chunk, kernel.numbers),
          .operands = operands(step, run, update),
          .groups = plan::groups_for(step.builder.target(), static_cast<std::int64_t>(chunk.count), local_size),
          .storing = storing,
          .spirv = spirv_of(kernel, storage)};
}

void update_weights(const StageContext& step) {
  for (const state::ParameterRun& run : step.layout.parameters.runs()) {
    if (run.training.frozen) continue;
    const UpdateRule& rule = *step.layout.optimizers[run.training.optimizer];
    if (rule.in_operators()) {
      update_by_operators(step, run, rule);
    } else {
      update_by_kernel(step, run, rule);
    }
  }
}

}  // namespace halfstep::step
