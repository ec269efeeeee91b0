#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plan/host_tensor.h"
#include "plan/layout.h"
#include "train/safetensors.h"
#include "train/trainer_impl.h"
#include "vk/transfer.h"

namespace halfstep {
namespace {

constexpr std::string_view state_name = "halfstep.state";

std::string_view optimizer_name(const Optimizer& optimizer) {
  constexpr std::array<std::string_view, 3> names{"sgd", "adam", "adamw"};
  return names[optimizer.index()];
}

/// What a checkpoint calls the moments of a parameter, as many as the optimizer keeps.
std::vector<std::string> moment_names(const std::string& parameter, std::uint32_t moments) {
  if (moments == 0) return {};
  if (moments == 1) return {parameter + ".momentum"};
  return {parameter + ".first_moment", parameter + ".second_moment"};
}

std::string_view stored_dtype(DType dtype) {
  return dtype == DType::f16 ? "F16" : "F32";
}

/// Floats as the row-major bytes of a stored tensor.
std::vector<std::byte> encode(DType dtype, std::span<const float> values) {
  std::vector<std::byte> encoded(values.size() * static_cast<std::size_t>(bytes(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f16) {
      const std::uint16_t half = plan::half_from_float(values[i]);
      std::memcpy(encoded.data() + 2 * i, &half, 2);
    } else {
      std::memcpy(encoded.data() + 4 * i, &values[i], 4);
    }
  }
  return encoded;
}

/// The floats of a stored tensor. Throws Error unless it is there with this shape, as F32 or F16.
std::vector<float> decode(const train::SafetensorsFile& file, const std::string& path, const std::string& name,
                          const Shape& shape) {
  const train::StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) {
    fail(path, fmt::format("expected a tensor '{}', got none of that name", name), "it is another model's checkpoint");
  }
  if (tensor->shape != shape || (tensor->dtype != "F32" && tensor->dtype != "F16")) {
    fail(path,
         fmt::format("expected '{}' as F32 or F16 {}, got {} {}", name, to_string(shape), tensor->dtype,
                     to_string(tensor->shape)),
         "it is another model's checkpoint");
  }
  std::vector<float> values(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor->dtype == "F16") {
      std::uint16_t half;
      std::memcpy(&half, tensor->data.data() + 2 * i, 2);
      values[i] = plan::float_from_half(half);
    } else {
      std::memcpy(&values[i], tensor->data.data() + 4 * i, 4);
    }
  }
  return values;
}

/// The loss scale to go on with: a dynamic one where it was, any other as it is asked for now.
float resumed_scale(const LossScale& scale, float stored) {
  const bool usable = std::isfinite(stored) && stored > 0;
  if (scale.kind != LossScale::Kind::dynamic || !usable) return scale.initial;
  return std::clamp(stored, scale.floor, scale.ceiling);
}

float resumed_rate(const Optimizer& optimizer, std::uint32_t applied) {
  const std::vector<float>& rates =
      std::visit([](const auto& kind) -> const Schedule& { return kind.rate; }, optimizer).rates;
  return rates[std::min<std::size_t>(applied, rates.size() - 1)];
}

}  // namespace

TensorType Trainer::Impl::master_type(const step::ParameterSlot& slot) const {
  return {form_.master ? DType::f32 : DType::f16, slot.type.shape};
}

void Trainer::Impl::write_state(const step::StepState& state) {
  vk::upload(context_, buffers_[step::state], 0, std::as_bytes(std::span(&state, 1)));
}

step::StepState Trainer::Impl::read_state() {
  step::StepState state;
  vk::download(context_, buffers_[step::state], 0, std::as_writable_bytes(std::span(&state, 1)));
  return state;
}

/// Gives `buffer` a vector of values for each slot of `layout`, and zeros between them.
void Trainer::Impl::upload(const vk::Buffer& buffer, const step::ParameterLayout& layout, DType dtype,
                           const std::vector<std::vector<float>>& values) {
  const auto element = static_cast<std::uint64_t>(bytes(dtype));
  std::vector<std::byte> memory(layout.padded_elements() * element);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const step::ParameterSlot& slot = layout.slots()[i];
    const std::vector<std::byte> packed = plan::to_memory({dtype, slot.type.shape}, values[i]);
    std::ranges::copy(packed, memory.begin() + static_cast<std::ptrdiff_t>(slot.first_element * element));
  }
  vk::upload(context_, buffer, 0, memory);
}

void Trainer::Impl::upload_weights(const std::vector<std::vector<float>>& values) {
  upload(buffers_[step::weights], layout_.parameters, form_.compute, values);
  if (form_.copy) upload(buffers_[step::masters], layout_.parameters, DType::f32, values);
}

/// A state that is never updated has itself for its next value.
void Trainer::Impl::upload_states(const std::vector<std::vector<float>>& values) {
  upload(buffers_[step::states], layout_.states, DType::f32, values);
  upload(buffers_[step::next], layout_.states, DType::f32, values);
}

void Trainer::Impl::initialize(std::uint64_t seed) {
  const auto first_values = [&](const step::ParameterLayout& layout) {
    std::vector<std::vector<float>> values;
    for (std::size_t i = 0; i < layout.slots().size(); ++i) {
      values.push_back(step::initial_values(layout.slots()[i], static_cast<std::uint32_t>(i), seed));
    }
    return values;
  };
  upload_weights(first_values(layout_.parameters));
  upload_states(first_values(layout_.states));
  vk::fill(context_, buffers_[step::moments], 0, buffers_[step::moments].bytes(), 0);
  step::StepState state;
  state.loss_scale = precision_.loss_scale.initial;
  state.rate = resumed_rate(optimizer_, 0);
  state.seed[0] = static_cast<std::uint32_t>(seed);
  state.seed[1] = static_cast<std::uint32_t>(seed >> 32);
  const auto set_betas = [&](const auto& kind) {
    if constexpr (requires { kind.beta1; }) {
      state.beta1_power = kind.beta1;
      state.beta2_power = kind.beta2;
    }
  };
  std::visit(set_betas, optimizer_);
  write_state(state);
  start_sampling(0);
}

std::vector<float> Trainer::Impl::download(const vk::Buffer& buffer, const step::ParameterSlot& slot,
                                           const TensorType& type) {
  std::vector<std::byte> memory(plan::byte_size(type));
  vk::download(context_, buffer, slot.first_element * static_cast<std::uint64_t>(bytes(type.dtype)), memory);
  return plan::floats_from_memory(type, memory);
}

std::vector<float> Trainer::Impl::download_weights(const step::ParameterSlot& slot) {
  return download(master_buffer(), slot, master_type(slot));
}

std::vector<float> Trainer::Impl::download_state(const step::ParameterSlot& slot) {
  return download(buffers_[step::states], slot, slot.type);
}

/// One value for each moment, for each element: first all of the first moment, then all of the second.
std::vector<std::vector<float>> Trainer::Impl::download_moments(const step::ParameterSlot& slot) {
  const std::size_t moments = form_.moments_per_element;
  const auto padded = static_cast<std::size_t>(plan::layout(slot.type.shape).padded_elements());
  std::vector<float> store(padded * moments);
  vk::download(context_, buffers_[step::moments], slot.first_element * moments * 4,
               std::as_writable_bytes(std::span(store)));
  std::vector<std::vector<float>> result;
  for (std::size_t moment = 0; moment < moments; ++moment) {
    std::vector<float> values(padded);
    for (std::size_t i = 0; i < padded; ++i) values[i] = store[(i / 4 * moments + moment) * 4 + i % 4];
    result.push_back(plan::floats_from_memory({DType::f32, slot.type.shape}, std::as_bytes(std::span(values))));
  }
  return result;
}

std::vector<float> Trainer::Impl::parameter(std::string_view name) {
  finish();
  const auto slot = std::ranges::find(layout_.parameters.slots(), name, &step::ParameterSlot::name);
  if (slot != layout_.parameters.slots().end()) return download_weights(*slot);
  const auto state = std::ranges::find(layout_.states.slots(), name, &step::ParameterSlot::name);
  if (state != layout_.states.slots().end()) return download_state(*state);
  fail("trainer", fmt::format("expected the name of a parameter or state, got '{}'", name),
       fmt::format("the first one is '{}'", layout_.parameters.slots().front().name));
}

void Trainer::Impl::save(const std::filesystem::path& path) {
  finish();
  std::vector<std::vector<std::byte>> data;
  std::vector<train::StoredTensor> tensors;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, std::span<const float> values) {
    data.push_back(encode(dtype, values));
    tensors.push_back({name, std::string(stored_dtype(dtype)), shape, data.back()});
  };
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    add(slot.name, master_type(slot).dtype, slot.type.shape, download_weights(slot));
    const std::vector<std::string> names = moment_names(slot.name, form_.moments_per_element);
    const std::vector<std::vector<float>> moments = download_moments(slot);
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i], DType::f32, slot.type.shape, moments[i]);
  }
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    add(slot.name, DType::f32, slot.type.shape, download_state(slot));
  }
  const step::StepState state = read_state();
  tensors.push_back({std::string(state_name), "U32", {sizeof state / 4}, std::as_bytes(std::span(&state, 1))});
  train::write_safetensors(path, std::move(tensors),
                           {{"format", "halfstep 1"},
                            {"precision", precision_.name},
                            {"optimizer", std::string(optimizer_name(optimizer_))},
                            {"seed", std::to_string(seed_)},
                            {"step", std::to_string(submitted_)},
                            {"applied", std::to_string(state.applied)},
                            {"loss_scale", fmt::format("{}", state.loss_scale)}});
}

step::StepState Trainer::Impl::state_from(const train::SafetensorsFile& file, const std::string& path) const {
  const train::StoredTensor* stored = file.find(state_name);
  step::StepState state;
  if (stored == nullptr || stored->dtype != "U32" || stored->data.size() != sizeof state) {
    fail(path,
         fmt::format("expected '{}' as U32 {{{}}}, got {}", state_name, sizeof state / 4,
                     stored == nullptr ? "none" : stored->dtype + " " + to_string(stored->shape)),
         "only a file that Halfstep saved can be resumed");
  }
  std::memcpy(&state, stored->data.data(), sizeof state);
  state.loss_scale = resumed_scale(precision_.loss_scale, state.loss_scale);
  std::ranges::fill(state.padding, 0.0F);
  state.rate = resumed_rate(optimizer_, state.applied);
  state.overflow = 0;
  return state;
}

void Trainer::Impl::check_kind(const train::SafetensorsFile& file, const std::string& path) const {
  const auto found = file.metadata().find("optimizer");
  if (found != file.metadata().end() && found->second != optimizer_name(optimizer_)) {
    fail(path, fmt::format("expected a checkpoint of {}, got one of {}", optimizer_name(optimizer_), found->second));
  }
  const std::size_t expected =
      layout_.parameters.slots().size() * (1 + form_.moments_per_element) + layout_.states.slots().size() + 1;
  if (file.tensors().size() <= expected) return;
  for (const train::StoredTensor& tensor : file.tensors()) {
    const bool is_state = std::ranges::count(layout_.states.slots(), tensor.name, &step::ParameterSlot::name) > 0;
    const bool known =
        tensor.name == state_name || is_state || std::ranges::any_of(layout_.parameters.slots(), [&](const auto& slot) {
          const auto moments = moment_names(slot.name, form_.moments_per_element);
          return tensor.name == slot.name || std::ranges::find(moments, tensor.name) != moments.end();
        });
    if (!known)
      fail(path, fmt::format("expected the tensors of this model, got '{}' too", tensor.name),
           "it is another model's checkpoint");
  }
}

void Trainer::Impl::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const train::SafetensorsFile file(path);
  const std::size_t moments = form_.moments_per_element;
  std::vector<std::vector<float>> weights;
  std::vector<float> moment_store(layout_.parameters.padded_elements() * moments);
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    weights.push_back(decode(file, name, slot.name, slot.type.shape));
    const std::vector<std::string> names = moment_names(slot.name, form_.moments_per_element);
    for (std::size_t moment = 0; moment < moments; ++moment) {
      const std::vector<float> values = decode(file, name, names[moment], slot.type.shape);
      const std::vector<std::byte> packed = plan::to_memory({DType::f32, slot.type.shape}, values);
      for (std::size_t i = 0; i < packed.size() / 4; ++i) {
        const std::size_t to = slot.first_element * moments + (i / 4 * moments + moment) * 4 + i % 4;
        std::memcpy(&moment_store[to], packed.data() + 4 * i, 4);
      }
    }
  }
  std::vector<std::vector<float>> states;
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    states.push_back(decode(file, name, slot.name, slot.type.shape));
  }
  check_kind(file, name);
  const step::StepState state = state_from(file, name);
  finish();
  upload_weights(weights);
  upload_states(states);
  if (moments > 0) vk::upload(context_, buffers_[step::moments], 0, std::as_bytes(std::span(moment_store)));
  write_state(state);
  seed_ = state.seed[0] | static_cast<std::uint64_t>(state.seed[1]) << 32;
  latest_ = {};
  latest_.applied = state.applied;
  latest_.skipped = state.skipped;
  latest_.loss_scale = state.loss_scale;
  latest_.step = state.attempted[0] | static_cast<std::uint64_t>(state.attempted[1]) << 32;
  start_sampling(latest_.step);
}

}  // namespace halfstep
