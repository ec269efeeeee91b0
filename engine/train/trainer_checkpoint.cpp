#include <halfstep/checkpoint.h>
#include <halfstep/error.h>
#include <halfstep/version.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "state/gradient_scales.h"
#include "train/checkpoint_contents.h"
#include "train/checkpoint_reader.h"
#include "train/epoch_position.h"
#include "train/stored_values.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

using io::StoredTensor;

constexpr std::string_view state_name = "halfstep.state";
constexpr std::string_view scales_name = "halfstep.gradient_scales";

/// What a StepState took before it counted tensors that were left out.
constexpr std::size_t first_state_bytes = 64;

/// What a checkpoint calls the optimizer's states of a parameter.
std::vector<std::string> moment_names(const state::ParameterSlot& slot, const Optimizer& optimizer) {
  if (slot.training.frozen) return {};
  std::vector<std::string> names = optimizer->states();
  for (std::string& name : names) name = fmt::format("{}.{}", train::stored_name(slot.name), name);
  return names;
}

/// What a checkpoint calls the averages of a parameter; empty where there are none.
std::string average_name(const state::ParameterSlot& slot, float decay) {
  return decay == 0 || slot.training.frozen ? "" : train::stored_name(slot.name) + ".average";
}

void add(Checkpoint::Contents& contents, const std::string& name, DType dtype, const state::ParameterSlot& slot,
         std::vector<float> values) {
  contents.values.push_back({name, dtype, slot.type.shape, slot.stored, std::move(values)});
}

void add(Checkpoint::Contents& contents, std::string_view name, const char* dtype, std::span<const std::byte> bytes) {
  contents.raw.push_back({std::string(name), dtype, {bytes.begin(), bytes.end()}});
}

/// Throws Error where a file is of another model, by what both say of it.
void refuse_other_model(const io::Metadata& file, const io::Metadata& own, const std::string& name) {
  for (const char* key : {"model", "input"}) {
    const auto theirs = file.find(key);
    const auto ours = own.find(key);
    if (theirs == file.end() || ours == own.end() || theirs->second == ours->second) continue;
    fail(ErrorCode::bad_file, name,
         fmt::format("expected a checkpoint of {} {}, got one of {}", key, ours->second, theirs->second));
  }
}

/// The loss scale to go on with: a dynamic one where it was, any other as it is asked for now.
float resumed_scale(const LossScale& scale, float stored) {
  const bool usable = std::isfinite(stored) && stored > 0;
  if (scale.kind != LossScale::Kind::dynamic || !usable) return scale.initial;
  return std::clamp(stored, scale.floor, scale.ceiling);
}

}  // namespace

io::Metadata Trainer::Impl::metadata(const state::StepState& state) const {
  io::Metadata result{{"format", "halfstep 1"},
                      {"version", std::string(version())},
                      {"precision", precision_.name},
                      {"optimizer", optimizer_->name()},
                      {"seed", std::to_string(seed_)},
                      {"step", std::to_string(submitted_)},
                      {"applied", std::to_string(state.applied)},
                      {"average_decay", fmt::format("{}", average_decay_)},
                      {"loss_scale", fmt::format("{}", state.loss_scale)}};
  result.insert(about_.begin(), about_.end());
  if (set_ != nullptr) train::note_position(result, epoch_size(), drawn());
  return result;
}

Checkpoint Trainer::Impl::checkpoint(const std::map<std::string, std::string>& notes) {
  finish();
  Checkpoint::Contents contents;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) {
    add(contents, train::stored_name(slot.name), best_type(slot).dtype, slot, download_weights(slot));
    const std::string average = average_name(slot, average_decay_);
    if (!average.empty()) add(contents, average, DType::f32, slot, download_averages(slot));
    const std::vector<std::string> names = moment_names(slot, optimizer_);
    if (names.empty()) continue;
    std::vector<std::vector<float>> moments = download_moments(slot);
    for (std::size_t i = 0; i < names.size(); ++i) {
      add(contents, names[i], form_.moments, slot, std::move(moments[i]));
    }
  }
  for (const state::ParameterSlot& slot : layout_.states.slots()) {
    add(contents, train::stored_name(slot.name), DType::f32, slot, download_state(slot));
  }
  const state::StepState state = read_state();
  add(contents, state_name, "U32", std::as_bytes(std::span(&state, 1)));
  if (form_.scaled) {
    const std::vector<float> scales = download_scales();
    add(contents, scales_name, "F32", std::as_bytes(std::span(scales)));
  }
  contents.metadata = metadata(state);
  for (const auto& [key, text] : notes) {
    if (contents.metadata.emplace(key, text).second) continue;
    fail("checkpoint", fmt::format("expected notes under names of their own, got '{}'", key));
  }
  return Checkpoint(std::make_shared<const Checkpoint::Contents>(std::move(contents)));
}

void Trainer::Impl::save_weights(const std::filesystem::path& path, Weights weights) {
  check_averages(weights);
  finish();
  Checkpoint::Contents contents;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) {
    const DType dtype = weights == Weights::averaged ? DType::f32 : best_type(slot).dtype;
    add(contents, train::stored_name(slot.name), dtype, slot, download_weights(slot, weights));
  }
  for (const state::ParameterSlot& slot : layout_.states.slots()) {
    add(contents, train::stored_name(slot.name), DType::f32, slot, download_state(slot));
  }
  contents.metadata = metadata(read_state());
  Checkpoint(std::make_shared<const Checkpoint::Contents>(std::move(contents))).write(path);
}

state::StepState Trainer::Impl::state_from(const io::SafetensorsFile& file, const std::string& path) const {
  const io::StoredTensor* stored = file.find(state_name);
  state::StepState state;
  const std::size_t size = stored == nullptr ? 0 : stored->data.size();
  if ((size != sizeof state && size != first_state_bytes) || stored->dtype != "U32") {
    fail(ErrorCode::bad_file, path,
         fmt::format("expected '{}' as U32 {{{}}}, got {}", state_name, sizeof state / 4,
                     stored == nullptr ? "none" : stored->dtype + " " + to_string(stored->shape)),
         "only a file that save() wrote can be resumed; load_weights() takes others");
  }
  std::memcpy(&state, stored->data.data(), size);
  state.loss_scale = resumed_scale(precision_.loss_scale, state.loss_scale);
  std::ranges::fill(state.padding, 0.0F);
  state.rate = rate_after(state.applied);
  state.overflow = 0;
  state.clip = 1;
  return state;
}

/// The scales of gradients to go on with: from 1 on where the file has none.
std::vector<float> Trainer::Impl::scales_from(const io::SafetensorsFile& file, const std::string& path) const {
  const io::StoredTensor* stored = file.find(scales_name);
  std::vector<float> scales(layout_.parameters.slots().size(), 1.0F);
  if (stored == nullptr) return scales;
  const bool fits = stored->dtype == "F32" && stored->data.size() == 4 * scales.size();
  if (fits) std::memcpy(scales.data(), stored->data.data(), stored->data.size());
  if (!fits || !std::ranges::all_of(scales, state::gradient_scales::is_scale)) {
    fail(ErrorCode::bad_file, path,
         fmt::format("expected '{}' as F32 {{{}}}, powers of two from 2^-24 to 2^24, got {} {}", scales_name,
                     scales.size(), stored->dtype, fits ? "others" : to_string(stored->shape)));
  }
  return scales;
}

ResumePoint Trainer::Impl::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const io::SafetensorsFile file(path);
  check_format(file.metadata(), name);
  refuse_other_model(file.metadata(), about_, name);
  const auto kind = file.metadata().find("optimizer");
  if (kind != file.metadata().end() && kind->second != optimizer_->name()) {
    fail(ErrorCode::bad_file, name,
         fmt::format("expected a checkpoint of {}, got one of {}", optimizer_->name(), kind->second));
  }
  const state::StepState state = state_from(file, name);
  const std::vector<float> scales = scales_from(file, name);
  const LoadOptions options{.ignored = {std::string(state_name), std::string(scales_name)}};
  train::CheckpointReader reader(file, options);
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<std::vector<float>>> moments;
  std::vector<std::vector<float>> averages;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) {
    weights.push_back(reader.take(train::stored_name(slot.name), slot));
    const std::string average = average_name(slot, average_decay_);
    if (!average.empty()) averages.push_back(reader.take(average, slot));
    moments.emplace_back();
    for (const std::string& moment : moment_names(slot, optimizer_)) {
      moments.back().push_back(reader.take(moment, slot));
    }
  }
  std::vector<std::vector<float>> states;
  for (const state::ParameterSlot& slot : layout_.states.slots()) {
    states.push_back(reader.take(train::stored_name(slot.name), slot));
  }
  reader.report(name);
  const std::uint64_t steps = state.attempted[0] | static_cast<std::uint64_t>(state.attempted[1]) << 32;
  std::int64_t drawn = 0;
  if (set_ != nullptr) {
    drawn = train::position_from(file.metadata(), name, epoch_size(), static_cast<std::int64_t>(steps));
  }
  finish();
  upload_weights(weights);
  upload_averages(averages);
  upload_states(states);
  upload_moments(moments);
  upload_scales(scales);
  write_state(state);
  seed_ = state.seed[0] | static_cast<std::uint64_t>(state.seed[1]) << 32;
  latest_ = {};
  latest_.applied = state.applied;
  latest_.skipped = state.skipped;
  latest_.left_out = state.left_out;
  latest_.loss_scale = state.loss_scale;
  latest_.step = steps;
  start_sampling(steps, drawn);
  if (set_ == nullptr) return {steps};
  return {steps, drawn / epoch_size().steps(), drawn % epoch_size().steps()};
}

LoadReport Trainer::Impl::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  const io::SafetensorsFile file(path);
  check_format(file.metadata(), path.string());
  train::CheckpointReader reader(file, options);
  finish();
  const auto take = [&](const state::ParameterSlot& slot, const auto& present) {
    std::vector<float> values = reader.take(train::stored_name(slot.name), slot);
    return values.empty() ? present(slot) : values;
  };
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> states;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) {
    weights.push_back(take(slot, [this](const auto& own) { return download_weights(own); }));
  }
  for (const state::ParameterSlot& slot : layout_.states.slots()) {
    states.push_back(take(slot, [this](const auto& own) { return download_state(own); }));
  }
  const LoadReport report = reader.report(path.string());
  upload_weights(weights);
  average_weights();
  upload_states(states);
  return report;
}

}  // namespace halfstep
