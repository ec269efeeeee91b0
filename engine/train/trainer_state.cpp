// What a trainer reads of its state, and what it sets: evaluation, checkpoints, weights.
#include <halfstep/error.h>

#include <fmt/format.h>

#include <utility>

#include "train/trainer_impl.h"

namespace halfstep {

Evaluation Trainer::Impl::evaluate(const Dataset& set, Weights weights, const std::function<bool()>& stop) {
  workspace.store->check(weights);
  if (!evaluator) fail("evaluate", "expected a trainer with a feed, got one without");
  finish();
  return (weights == Weights::averaged ? averaged_evaluator : evaluator)->evaluate(set, stop);
}

Checkpoint Trainer::Impl::checkpoint(const std::map<std::string, std::string>& notes) {
  finish();
  return checkpoints->take(notes);
}

LoadReport Trainer::Impl::load_weights(const std::filesystem::path& path, const LoadOptions& how) {
  finish();
  origin.snapshot.reset();
  return checkpoints->load_weights(path, how);
}

ResumePoint Trainer::Impl::load(const io::SafetensorsFile& file, const std::string& name) {
  finish();
  const auto [resumed, drawn] = checkpoints->load(file, name);
  const state::StepState& state = resumed.step;
  const std::uint64_t steps = train::attempted(state);
  StepReport latest;
  latest.applied = state.applied;
  latest.skipped = state.skipped;
  latest.tensor_updates_skipped = state.tensor_updates_skipped;
  latest.loss_scale = state.loss_scale;
  latest.step = steps;
  reports->resume(latest);
  const std::uint64_t seed = state.seed[0] | static_cast<std::uint64_t>(state.seed[1]) << 32;
  if (rank_exchange) {
    rank_exchange->compare_weights();
    rank_exchange->start(seed, steps);
  }
  batches->start(seed, steps, drawn);
  if (!batches->has_epochs()) return {steps};
  const std::int64_t epoch_steps = batches->epoch_size().steps();
  return {steps, drawn / epoch_steps, drawn % epoch_steps};
}

void Trainer::Impl::set_parameter(std::string_view name, std::span<const float> values) {
  state::ParameterStore& store = *workspace.store;
  state::KeptTensor tensor = store.find(name);
  const Shape& shape = tensor.entry->type.shape;
  if (std::ssize(values) != elements(shape)) {
    fail("trainer",
         fmt::format("expected {} values for '{}' {}, got {}", elements(shape), name, to_string(shape), values.size()));
  }
  finish();
  std::vector<float> kept(values.begin(), values.end());
  origin.snapshot.reset();
  store.write({&tensor, 1}, {&kept, 1});
  if (!store.spec().averages || tensor.kind == state::KeptTensor::Kind::state || tensor.entry->training.frozen) return;
  kept = store.read(tensor);
  tensor.kind = state::KeptTensor::Kind::average;
  store.write({&tensor, 1}, {&kept, 1});
}

}  // namespace halfstep
