#include <halfstep/checkpoint.h>
#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "train/stored_values.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

using train::StoredTensor;

constexpr std::string_view state_name = "halfstep.state";

std::string_view optimizer_name(const Optimizer& optimizer) {
  constexpr std::array<std::string_view, 3> names{"sgd", "adam", "adamw"};
  return names[optimizer.index()];
}

/// What a checkpoint calls the moments of a parameter, as many as the optimizer keeps.
std::vector<std::string> moment_names(const step::ParameterSlot& slot, std::uint32_t moments) {
  const std::string stored = train::stored_name(slot.name);
  if (moments == 0 || slot.training.frozen) return {};
  if (moments == 1) return {stored + ".momentum"};
  return {stored + ".first_moment", stored + ".second_moment"};
}

/// What a checkpoint calls the averages of a parameter; empty where there are none.
std::string average_name(const step::ParameterSlot& slot, float decay) {
  return decay == 0 || slot.training.frozen ? "" : train::stored_name(slot.name) + ".average";
}

/// The tensors of a file to be, with their bytes.
class TensorList {
 public:
  void add(const std::string& name, DType dtype, const step::ParameterSlot& slot, std::span<const float> values) {
    data_.push_back(train::encode(dtype, slot.type.shape, slot.stored, values));
    tensors_.push_back(
        {name, dtype == DType::f16 ? "F16" : "F32", train::stored_shape(slot.type.shape, slot.stored), data_.back()});
  }
  void add(StoredTensor tensor) { tensors_.push_back(std::move(tensor)); }
  std::vector<StoredTensor> take() { return std::move(tensors_); }

 private:
  std::vector<std::vector<std::byte>> data_;
  std::vector<StoredTensor> tensors_;
};

/// Takes a model's tensors out of a file, and keeps account of what is there and what is not.
class Reader {
 public:
  Reader(const train::SafetensorsFile& file, const LoadOptions& options) : file_(file), options_(options) {}

  /// Whether `name` is to be left alone.
  bool ignored(std::string_view name) const {
    return std::ranges::any_of(options_.ignored, [&](const std::string& pattern) { return matches(pattern, name); });
  }

  /// The values of a tensor; empty where the file has none that fits.
  std::vector<float> take(const std::string& name, const step::ParameterSlot& slot) {
    asked_.insert(name);
    if (ignored(name)) return {};
    const StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr) {
      report_.missing.push_back(name);
      return {};
    }
    if (const auto wrong = train::mismatch(*tensor, slot.type.shape, slot.stored)) {
      report_.mismatched.push_back(fmt::format("{}: {}", name, *wrong));
      return {};
    }
    std::vector<float> values = train::decode(*tensor, slot.type.shape, slot.stored);
    report_.loaded.push_back(name);
    const auto finite = [](float value) { return std::isfinite(value); };
    if (!std::ranges::all_of(values, finite)) report_.not_finite.push_back(name);
    return values;
  }

  /// After everything was taken.
  LoadReport report(std::string_view path) {
    for (const StoredTensor& tensor : file_.tensors()) {
      if (!asked_.contains(tensor.name) && !ignored(tensor.name)) report_.unexpected.push_back(tensor.name);
    }
    if (options_.strict) refuse_differences(path);
    return report_;
  }

 private:
  void refuse_differences(std::string_view path) const {
    std::string text;
    const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
      constexpr std::size_t most = 8;
      if (names.empty()) return;
      text += fmt::format("{}{} {} (", text.empty() ? "" : ", ", names.size(), what);
      for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i > 0 ? ", " : "") + names[i];
      text += names.size() > most ? ", ...)" : ")";
    };
    list("missing", report_.missing);
    list("unexpected", report_.unexpected);
    list("mismatched", report_.mismatched);
    if (text.empty()) return;
    fail(path, "expected the tensors of this model, got " + text, "it is another model's");
  }

  const train::SafetensorsFile& file_;
  const LoadOptions& options_;
  std::set<std::string> asked_;
  LoadReport report_;
};

/// The loss scale to go on with: a dynamic one where it was, any other as it is asked for now.
float resumed_scale(const LossScale& scale, float stored) {
  const bool usable = std::isfinite(stored) && stored > 0;
  if (scale.kind != LossScale::Kind::dynamic || !usable) return scale.initial;
  return std::clamp(stored, scale.floor, scale.ceiling);
}

}  // namespace

train::Metadata Trainer::Impl::metadata(const step::StepState& state) const {
  return {{"format", "halfstep 1"},
          {"version", HALFSTEP_VERSION},
          {"model", model_},
          {"precision", precision_.name},
          {"optimizer", std::string(optimizer_name(optimizer_))},
          {"seed", std::to_string(seed_)},
          {"step", std::to_string(submitted_)},
          {"applied", std::to_string(state.applied)},
          {"average_decay", fmt::format("{}", average_decay_)},
          {"loss_scale", fmt::format("{}", state.loss_scale)}};
}

void Trainer::Impl::save(const std::filesystem::path& path) {
  finish();
  TensorList tensors;
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    tensors.add(train::stored_name(slot.name), master_type(slot).dtype, slot, download_weights(slot));
    const std::string average = average_name(slot, average_decay_);
    if (!average.empty()) tensors.add(average, DType::f32, slot, download_averages(slot));
    const std::vector<std::string> names = moment_names(slot, form_.moments_per_element);
    if (names.empty()) continue;
    const std::vector<std::vector<float>> moments = download_moments(slot);
    for (std::size_t i = 0; i < names.size(); ++i) tensors.add(names[i], form_.moments, slot, moments[i]);
  }
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    tensors.add(train::stored_name(slot.name), DType::f32, slot, download_state(slot));
  }
  const step::StepState state = read_state();
  tensors.add({std::string(state_name), "U32", {sizeof state / 4}, std::as_bytes(std::span(&state, 1))});
  train::write_safetensors(path, tensors.take(), metadata(state));
}

void Trainer::Impl::save_weights(const std::filesystem::path& path, Weights weights) {
  check_averages(weights);
  finish();
  TensorList tensors;
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    const DType dtype = weights == Weights::averaged ? DType::f32 : master_type(slot).dtype;
    tensors.add(train::stored_name(slot.name), dtype, slot, download_weights(slot, weights));
  }
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    tensors.add(train::stored_name(slot.name), DType::f32, slot, download_state(slot));
  }
  train::write_safetensors(path, tensors.take(), metadata(read_state()));
}

step::StepState Trainer::Impl::state_from(const train::SafetensorsFile& file, const std::string& path) const {
  const StoredTensor* stored = file.find(state_name);
  step::StepState state;
  if (stored == nullptr || stored->dtype != "U32" || stored->data.size() != sizeof state) {
    fail(path,
         fmt::format("expected '{}' as U32 {{{}}}, got {}", state_name, sizeof state / 4,
                     stored == nullptr ? "none" : stored->dtype + " " + to_string(stored->shape)),
         "only a file that save() wrote can be resumed; load_weights() takes others");
  }
  std::memcpy(&state, stored->data.data(), sizeof state);
  state.loss_scale = resumed_scale(precision_.loss_scale, state.loss_scale);
  std::ranges::fill(state.padding, 0.0F);
  state.rate = rate_after(state.applied);
  state.overflow = 0;
  state.clip = 1;
  return state;
}

void Trainer::Impl::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const train::SafetensorsFile file(path);
  const auto kind = file.metadata().find("optimizer");
  if (kind != file.metadata().end() && kind->second != optimizer_name(optimizer_)) {
    fail(name, fmt::format("expected a checkpoint of {}, got one of {}", optimizer_name(optimizer_), kind->second));
  }
  const step::StepState state = state_from(file, name);
  const LoadOptions options{.ignored = {std::string(state_name)}};
  Reader reader(file, options);
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<std::vector<float>>> moments;
  std::vector<std::vector<float>> averages;
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    weights.push_back(reader.take(train::stored_name(slot.name), slot));
    const std::string average = average_name(slot, average_decay_);
    if (!average.empty()) averages.push_back(reader.take(average, slot));
    moments.emplace_back();
    for (const std::string& moment : moment_names(slot, form_.moments_per_element)) {
      moments.back().push_back(reader.take(moment, slot));
    }
  }
  std::vector<std::vector<float>> states;
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    states.push_back(reader.take(train::stored_name(slot.name), slot));
  }
  reader.report(name);
  finish();
  upload_weights(weights);
  upload_averages(averages);
  upload_states(states);
  upload_moments(moments);
  write_state(state);
  seed_ = state.seed[0] | static_cast<std::uint64_t>(state.seed[1]) << 32;
  latest_ = {};
  latest_.applied = state.applied;
  latest_.skipped = state.skipped;
  latest_.loss_scale = state.loss_scale;
  latest_.step = state.attempted[0] | static_cast<std::uint64_t>(state.attempted[1]) << 32;
  start_sampling(latest_.step);
}

LoadReport Trainer::Impl::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  const train::SafetensorsFile file(path);
  Reader reader(file, options);
  finish();
  const auto take = [&](const step::ParameterSlot& slot, const auto& present) {
    std::vector<float> values = reader.take(train::stored_name(slot.name), slot);
    return values.empty() ? present(slot) : values;
  };
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> states;
  for (const step::ParameterSlot& slot : layout_.parameters.slots()) {
    weights.push_back(take(slot, [this](const auto& own) { return download_weights(own); }));
  }
  for (const step::ParameterSlot& slot : layout_.states.slots()) {
    states.push_back(take(slot, [this](const auto& own) { return download_state(own); }));
  }
  const LoadReport report = reader.report(path.string());
  upload_weights(weights);
  average_weights();
  upload_states(states);
  return report;
}

}  // namespace halfstep
