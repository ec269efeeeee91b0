#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "step/stages.h"

namespace halfstep::step {
namespace {

/// The push constants of an update kernel: two words, then the rule's numbers.
std::vector<std::byte> push_of(const Stretch& stretch, const std::vector<float>& numbers) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(stretch.first), static_cast<std::uint32_t>(stretch.count)};
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

class Update {
 public:
  Update(plan::ProgramBuilder& builder, plan::TensorId state, const state::WeightForm& form, const Precision& precision,
         const state::ParameterLayout& layout, const ParameterBuffers& buffers)
      : builder_(builder), state_(state), form_(form), precision_(precision), layout_(layout), buffers_(buffers) {}

  void dispatch(const Stretch& stretch, const UpdateKernel& kernel) {
    const std::string_view storage = plan::storage(builder_.target(), form_.compute);
    const std::uint32_t local_size = flat_local_size(builder_.target());
    std::vector<std::uint32_t> constants{local_size,
                                         form_.master,
                                         form_.copy,
                                         is_narrow(form_.moments),
                                         precision_.rounding.optimizer == Rounding::stochastic,
                                         form_.scaled};
    constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
    builder_.dispatch({.label = "update",
                       .shader = fmt::format("{}.{}", kernel.shader, storage),
                       .constants = std::move(constants),
                       .push = push_of(stretch, kernel.numbers),
                       .operands = operands(stretch),
                       .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size),
                       .storing = storing(),
                       .spirv = spirv_of(kernel, storage)});
  }

 private:
  plan::Storing storing() const {
    return {.stochastic = precision_.rounding.weights == Rounding::stochastic,
            .saturate = precision_.overflow == Overflow::saturate,
            .stream = state::weight_rounding_stream};
  }

  /// Bindings that a form of the kernel does not touch are given the gradients: a buffer must be bound all the same.
  std::vector<plan::Operand> operands(const Stretch& stretch) {
    const auto compute = static_cast<std::uint64_t>(bytes(form_.compute));
    const auto moment = static_cast<std::uint64_t>(bytes(form_.moments));
    const plan::Operand gradients{place("gradients", buffers_.gradients, stretch, compute), plan::Access::read};
    std::vector<plan::Operand> result{{state_, plan::Access::read}, gradients, gradients, gradients, gradients};
    if (form_.master) result[2] = {place("masters", buffers_.masters, stretch, 4), plan::Access::read_write};
    if (form_.copy || !form_.master) {
      result[3] = {place("weights", buffers_.weights, stretch, compute), plan::Access::read_write};
    }
    if (form_.moments_per_element > 0) {
      result[4] = {place("moments", buffers_.moments, stretch, moment * form_.moments_per_element),
                   plan::Access::read_write};
    }
    result.push_back(read_blocks(builder_, layout_, form_, buffers_, gradients.tensor));
    return result;
  }

  plan::TensorId place(const char* name, plan::BufferId buffer, const Stretch& stretch, std::uint64_t element_bytes) {
    return builder_.place_bytes(name, stretch.count * 4 * element_bytes, {buffer, stretch.first * 4 * element_bytes});
  }

  plan::ProgramBuilder& builder_;
  plan::TensorId state_;
  const state::WeightForm& form_;
  const Precision& precision_;
  const state::ParameterLayout& layout_;
  const ParameterBuffers& buffers_;
};

}  // namespace

void update_weights(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                    const Precision& precision, const ParameterBuffers& buffers, const Optimizer& optimizer) {
  const state::WeightForm form = state::weight_form(precision, optimizer);
  const std::uint64_t widest = 16 * std::max<std::uint64_t>(1, form.moments_per_element);
  Update update(builder, state, form, precision, layout, buffers);
  for (const state::ParameterRun& run : layout.runs()) {
    if (run.training.frozen) continue;
    const UpdateKernel kernel = optimizer->kernel({.rate = run.training.rate,
                                                   .weight_decay = run.training.weight_decay,
                                                   .scale_in_rate = precision.loss_scale.in_rate});
    for (Stretch stretch : cut(builder.target(), run.padded_elements / 4, widest)) {
      stretch.first += run.first_element / 4;
      update.dispatch(stretch, kernel);
    }
  }
}

void update_states(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                   plan::BufferId states, plan::Region next) {
  constexpr std::uint64_t quad_bytes = 16;
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.padded_elements() / 4, quad_bytes)) {
    const auto place = [&](const char* name, plan::Region store) {
      store.offset += stretch.first * quad_bytes;
      return builder.place_bytes(name, stretch.count * quad_bytes, store);
    };
    builder.dispatch({.label = "update states",
                      .shader = "update_states",
                      .constants = {local_size},
                      .push = plan::push_bytes(static_cast<std::uint32_t>(stretch.count)),
                      .operands = {{state, plan::Access::read},
                                   {place("next states", next), plan::Access::read},
                                   {place("states", {states, 0}), plan::Access::write}},
                      .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size)});
  }
}

}  // namespace halfstep::step
