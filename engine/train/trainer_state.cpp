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
  Evaluation result;
  with_synchronised(
      [&] { result = (weights == Weights::averaged ? averaged_evaluator : evaluator)->evaluate(set, stop); });
  return result;
}

void Trainer::Impl::synchronise() {
  if (!local_steps) return;
  finish();
  local_steps->synchronise();
}

/// Calls something that reads weights: those that all ranks have.
void Trainer::Impl::with_synchronised(const std::function<void()>& call) {
  if (local_steps) return local_steps->with_synchronised(call);
  call();
}

Checkpoint Trainer::Impl::checkpoint(const std::map<std::string, std::string>& notes) {
  finish();
  Checkpoint taken = checkpoints->take(notes);
  if (!local_steps) return taken;
  return Checkpoint(std::make_shared<const Checkpoint::Contents>(local_steps->of_all_ranks(taken.contents())));
}

Checkpoint Trainer::Impl::weights_only(Weights weights) {
  finish();
  std::optional<Checkpoint> taken;
  with_synchronised([&] { taken = checkpoints->take_weights(weights); });
  return *taken;
}

LoadReport Trainer::Impl::load_weights(const std::filesystem::path& path, const LoadOptions& how) {
  finish();
  LoadReport report;
  const auto read = [&] {
    report = checkpoints->load_weights(path, how);
    origin.snapshot.reset();
  };
  if (local_steps) {
    local_steps->with_synchronised(read, train::LocalSteps::After::keep);
    local_steps->start(batches->seed(), static_cast<std::uint64_t>(batches->steps()));
  } else {
    read();
  }
  if (rank_exchange) rank_exchange->compare_weights();  // files of one name may differ
  return report;
}

ResumePoint Trainer::Impl::load(const io::SafetensorsFile& file, const std::string& name) {
  finish();
  std::vector<train::LocalSteps::Synchronised> synchronised;
  std::string own;
  if (local_steps) {
    synchronised = local_steps->read(file, name);
    own = train::LocalSteps::own_prefix(file, options.ranks);
  }
  const auto [resumed, drawn] = checkpoints->load(file, name, own);
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
  if (local_steps) local_steps->resume(std::move(synchronised), local_steps->has_own(file), seed, steps);
  if (rank_exchange) {
    if (!local_steps || local_steps->is_synchronised()) rank_exchange->compare_weights();
    rank_exchange->start(seed, steps);
  }
  batches->start(seed, steps, drawn);
  if (!batches->has_epochs()) return {steps};
  const std::int64_t epoch_steps = batches->epoch_size().steps();
  return {steps, drawn / epoch_steps, drawn % epoch_steps};
}

std::vector<float> Trainer::Impl::parameter(std::string_view name, Weights weights) {
  finish();
  const state::ParameterStore& store = *workspace.store;
  return store.read(store.find(name, weights));
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
  if (local_steps) local_steps->set(tensor);
  if (!store.spec().averages || tensor.kind == state::KeptTensor::Kind::state || tensor.entry->training.frozen) return;
  kept = store.read(tensor);
  tensor.kind = state::KeptTensor::Kind::average;
  store.write({&tensor, 1}, {&kept, 1});
}

}  // namespace halfstep
