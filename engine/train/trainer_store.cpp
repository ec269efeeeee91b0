#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plan/host_tensor.h"
#include "plan/layout.h"
#include "state/gradient_scales.h"
#include "train/trainer_impl.h"
#include "vk/command/transfer.h"

namespace halfstep {

/// The rate of the step after `applied` updates.
float Trainer::Impl::rate_after(std::uint32_t applied) const {
  const std::vector<float>& rates = optimizer_->rate().rates;
  return rates[std::min<std::size_t>(applied, rates.size() - 1)];
}

/// Where a parameter is kept best: in the f32 masters, where there are some and they have it.
plan::BufferId Trainer::Impl::best_store(const state::ParameterSlot& slot) const {
  return form_.copy && slot.first_element < layout_.parameters.master_elements() ? state::buffers::masters
                                                                                 : state::buffers::weights;
}

TensorType Trainer::Impl::best_type(const state::ParameterSlot& slot) const {
  return {best_store(slot) == state::buffers::masters ? DType::f32 : form_.compute, slot.type.shape};
}

void Trainer::Impl::write_state(const state::StepState& state) {
  vk::upload(context_, buffers_[state::buffers::state], 0, std::as_bytes(std::span(&state, 1)));
}

state::StepState Trainer::Impl::read_state() {
  state::StepState state;
  vk::download(context_, buffers_[state::buffers::state], 0, std::as_writable_bytes(std::span(&state, 1)));
  return state;
}

/// Gives `buffer`, from `offset` on, a vector of values for each slot of `layout`, and zeros between them. The slots at
/// the end that it has no room for are left out.
void Trainer::Impl::upload(const vk::Buffer& buffer, const state::ParameterLayout& layout, DType dtype,
                           const std::vector<std::vector<float>>& values, std::uint64_t offset) {
  const auto element = static_cast<std::uint64_t>(bytes(dtype));
  std::vector<std::byte> memory(layout.padded_elements() * element);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const state::ParameterSlot& slot = layout.slots()[i];
    const std::vector<std::byte> packed = plan::to_memory({dtype, slot.type.shape}, values[i]);
    std::ranges::copy(packed, memory.begin() + static_cast<std::ptrdiff_t>(slot.first_element * element));
  }
  const std::uint64_t room = std::min<std::uint64_t>(memory.size(), buffer.bytes() - offset);
  vk::upload(context_, buffer, offset, std::span(memory).first(room));
}

/// Gives `buffer`, from `offset` on, the values of one slot, where it has room for them.
void Trainer::Impl::upload(const vk::Buffer& buffer, const state::ParameterSlot& slot, DType dtype,
                           std::span<const float> values, std::uint64_t offset) {
  offset += slot.first_element * static_cast<std::uint64_t>(bytes(dtype));
  if (offset >= buffer.bytes()) return;
  vk::upload(context_, buffer, offset, plan::to_memory({dtype, slot.type.shape}, values));
}

void Trainer::Impl::upload_weights(const std::vector<std::vector<float>>& values) {
  upload(buffers_[state::buffers::weights], layout_.parameters, form_.compute, values);
  if (form_.copy) upload(buffers_[state::buffers::masters], layout_.parameters, DType::f32, values);
}

/// Those of frozen parameters, which have none, come last.
void Trainer::Impl::upload_averages(const std::vector<std::vector<float>>& values) {
  if (average_decay_ > 0) upload(buffers_[state::buffers::averages], layout_.parameters, DType::f32, values);
}

/// A state that is never updated has itself for its next value.
void Trainer::Impl::upload_states(const std::vector<std::vector<float>>& values) {
  upload(buffers_[state::buffers::states], layout_.states, DType::f32, values);
  const std::uint64_t each = layout_.states.padded_elements() * 4;
  for (std::uint64_t i = 0; i < store_form_.next_states(); ++i) {
    upload(buffers_[state::buffers::next_states], layout_.states, DType::f32, values, i * each);
  }
}

void Trainer::Impl::initialize(std::uint64_t seed) {
  const auto first_values = [&](const state::ParameterLayout& layout) {
    std::vector<std::vector<float>> values;
    for (const state::ParameterSlot& slot : layout.slots()) {
      values.push_back(state::initial_values(slot, seed));
    }
    return values;
  };
  upload_weights(first_values(layout_.parameters));
  average_weights();
  upload_states(first_values(layout_.states));
  vk::fill(context_, buffers_[state::buffers::moments], 0, buffers_[state::buffers::moments].bytes(), 0);
  upload_scales(std::vector<float>(layout_.parameters.slots().size(), 1.0F));
  state::StepState state;
  state.loss_scale = precision_.loss_scale.initial;
  state.rate = rate_after(0);
  state.seed[0] = static_cast<std::uint32_t>(seed);
  state.seed[1] = static_cast<std::uint32_t>(seed >> 32);
  if (const auto correction = optimizer_->bias_correction()) {
    state.beta1_power = correction->beta1;
    state.beta2_power = correction->beta2;
  }
  write_state(state);
  start_sampling(0, 0);
}

std::vector<float> Trainer::Impl::download(const vk::Buffer& buffer, const state::ParameterSlot& slot,
                                           const TensorType& type) {
  std::vector<std::byte> memory(plan::byte_size(type));
  vk::download(context_, buffer, slot.first_element * static_cast<std::uint64_t>(bytes(type.dtype)), memory);
  return plan::floats_from_memory(type, memory);
}

std::vector<float> Trainer::Impl::download_weights(const state::ParameterSlot& slot) {
  return download(buffers_[best_store(slot)], slot, best_type(slot));
}

/// A weight that has no average is its own.
std::vector<float> Trainer::Impl::download_averages(const state::ParameterSlot& slot) {
  if (slot.training.frozen) return download_weights(slot);
  return download(buffers_[state::buffers::averages], slot, {DType::f32, slot.type.shape});
}

/// Has the averages begin anew, as the weights are.
void Trainer::Impl::average_weights() {
  if (average_decay_ == 0) return;
  std::vector<std::vector<float>> values;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) values.push_back(download_weights(slot));
  upload_averages(values);
}

/// What a parameter is, now or on average.
std::vector<float> Trainer::Impl::download_weights(const state::ParameterSlot& slot, Weights weights) {
  return weights == Weights::averaged ? download_averages(slot) : download_weights(slot);
}

void Trainer::Impl::check_averages(Weights weights) const {
  if (weights == Weights::current || average_decay_ > 0) return;
  fail("trainer", "expected a trainer that averages weights, got one that does not",
       "set TrainerOptions::average_decay, to 0.999 for instance");
}

std::vector<float> Trainer::Impl::download_state(const state::ParameterSlot& slot) {
  return download(buffers_[state::buffers::states], slot, slot.type);
}

/// For each of the optimizer's states a value for each element.
std::vector<std::vector<float>> Trainer::Impl::download_moments(const state::ParameterSlot& slot) {
  const std::size_t moments = form_.moments_per_element;
  if (moments == 0) return {};
  const auto padded = static_cast<std::size_t>(plan::layout(slot.type.shape).padded_elements());
  const TensorType type{form_.moments, {static_cast<std::int64_t>(padded * moments)}};
  std::vector<std::byte> memory(plan::byte_size(type));
  vk::download(context_, buffers_[state::buffers::moments],
               slot.first_element * moments * static_cast<std::uint64_t>(bytes(form_.moments)), memory);
  const std::vector<float> store = plan::floats_from_memory(type, memory);
  std::vector<std::vector<float>> result;
  for (std::size_t moment = 0; moment < moments; ++moment) {
    std::vector<float> values(padded);
    for (std::size_t i = 0; i < padded; ++i) values[i] = store[(i / 4 * moments + moment) * 4 + i % 4];
    result.push_back(plan::floats_from_memory({DType::f32, slot.type.shape}, std::as_bytes(std::span(values))));
  }
  return result;
}

/// Takes, for each parameter, the values of each moment.
void Trainer::Impl::upload_moments(const std::vector<std::vector<std::vector<float>>>& values) {
  const std::size_t moments = form_.moments_per_element;
  std::vector<float> store(layout_.parameters.trained_elements() * moments);
  for (std::size_t parameter = 0; parameter < values.size(); ++parameter) {
    const state::ParameterSlot& slot = layout_.parameters.slots()[parameter];
    for (std::size_t moment = 0; moment < values[parameter].size(); ++moment) {
      const std::vector<std::byte> packed = plan::to_memory({DType::f32, slot.type.shape}, values[parameter][moment]);
      for (std::size_t i = 0; i < packed.size() / 4; ++i) {
        const std::size_t to = slot.first_element * moments + (i / 4 * moments + moment) * 4 + i % 4;
        std::memcpy(&store[to], packed.data() + 4 * i, 4);
      }
    }
  }
  const TensorType type{form_.moments, {static_cast<std::int64_t>(store.size())}};
  vk::upload(context_, buffers_[state::buffers::moments], 0, plan::to_memory(type, store));
}

/// Scales of gradients in the order that parameters were written in, which does not depend on how they are grouped; 1
/// for those that have none.
std::vector<float> Trainer::Impl::download_scales() {
  std::vector<float> table(state::gradient_scales::table_bytes / 4);
  vk::download(context_, buffers_[state::buffers::gradient_scales], 0, std::as_writable_bytes(std::span(table)));
  std::vector<float> values(layout_.parameters.slots().size(), 1.0F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const state::ParameterSlot& slot = layout_.parameters.slots()[i];
    if (!slot.training.frozen) values[slot.index] = table[i + 1];
  }
  return values;
}

/// Takes them in the same order, and says which tensor each is for.
void Trainer::Impl::upload_scales(const std::vector<float>& values) {
  if (!form_.scaled) return;
  const std::vector<state::gradient_scales::Tensor> tensors = state::gradient_scales::tensors(layout_.parameters);
  std::vector<float> table{1};
  for (std::size_t i = 0; i < tensors.size(); ++i) table.push_back(values[layout_.parameters.slots()[i].index]);
  vk::upload(context_, buffers_[state::buffers::gradient_scales], 0, std::as_bytes(std::span(table)));
  vk::upload(context_, buffers_[state::buffers::gradient_scales], state::gradient_scales::tensors_offset,
             std::as_bytes(std::span(tensors)));
}

/// The slot of a parameter or state of that name, and whether it is a parameter's.
std::pair<const state::ParameterSlot*, bool> Trainer::Impl::slot_named(std::string_view name) const {
  for (const state::ParameterLayout* layout : {&layout_.parameters, &layout_.states}) {
    const auto slot = std::ranges::find(layout->slots(), name, &state::ParameterSlot::name);
    if (slot != layout->slots().end()) return {&*slot, layout == &layout_.parameters};
  }
  fail("trainer", fmt::format("expected the name of a parameter or state, got '{}'", name),
       fmt::format("the first one is '{}'", layout_.parameters.slots().front().name));
}

std::vector<float> Trainer::Impl::parameter(std::string_view name, Weights weights) {
  check_averages(weights);
  const auto [slot, is_parameter] = slot_named(name);
  finish();
  return is_parameter ? download_weights(*slot, weights) : download_state(*slot);
}

void Trainer::Impl::set_parameter(std::string_view name, std::span<const float> values) {
  const auto [slot, is_parameter] = slot_named(name);
  if (std::ssize(values) != elements(slot->type.shape)) {
    fail("trainer", fmt::format("expected {} values for '{}' {}, got {}", elements(slot->type.shape), name,
                                to_string(slot->type.shape), values.size()));
  }
  finish();
  if (is_parameter) {
    upload(buffers_[state::buffers::weights], *slot, form_.compute, values);
    if (form_.copy) upload(buffers_[state::buffers::masters], *slot, DType::f32, values);
    if (average_decay_ > 0) upload(buffers_[state::buffers::averages], *slot, DType::f32, download_weights(*slot));
    return;
  }
  upload(buffers_[state::buffers::states], *slot, DType::f32, values);
  const std::uint64_t each = layout_.states.padded_elements() * 4;
  for (std::uint64_t i = 0; i < store_form_.next_states(); ++i)
    upload(buffers_[state::buffers::next_states], *slot, DType::f32, values, i * each);
}

}  // namespace halfstep
