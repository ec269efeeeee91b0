#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "state/gradient_scales.h"
#include "train/about_model.h"
#include "train/feed.h"
#include "train/step_graph.h"
#include "train/trainer_impl.h"
#include "vk/command/transfer.h"

namespace halfstep {
namespace {

std::span<const std::byte> as_bytes_of(const auto& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

Trainer::Impl::Impl(const Device& device, const Graph& graph, const TrainerOptions& options)
    : device_(device),
      context_(vk::context_of(device)),
      target_(context_.target()),
      precision_(options.precision),
      optimizer_(options.optimizer),
      clip_norm_(options.clip_norm),
      average_decay_(options.average_decay),
      accumulate_(static_cast<std::uint32_t>(options.accumulate)),
      seed_(options.seed),
      pipelines_(context_),
      timeline_(context_) {
  train::check_values(graph, options);
  train::check_options(options);
  about_ = train::about_model(options);
  if (options.log) {
    for (const std::string& line : train::hyperparameter_notes(precision_, optimizer_)) options.log(line);
  }
  for (const auto& [name, metric] : options.metrics) metric_names_.push_back(name);
  graph_ = train::training_graph(graph, options);
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    inputs_.push_back({graph_.ir.values[graph_.inputs[i]].name, graph_.input_types[i]});
  }
  store_form_ = {.layout = step::layout_of(graph_),
                 .precision = precision_,
                 .weights = state::weight_form(precision_, optimizer_),
                 .moment_names = optimizer_->states(),
                 .rates = optimizer_->rate().rates,
                 .micro_batches = accumulate_,
                 .averages = average_decay_ > 0,
                 .averages_read = options.feed.has_value()};
  if (precision_.gradient_scales == GradientScales::per_tensor) state::gradient_scales::check_count(layout_.parameters);
  tune::Tuner tuner(context_, pipelines_, context_.settings().tuning, context_.settings().cache_folder);
  if (options.feed) {
    batch_shape_ = options.feed->samples.shape();
    const step::StepGraph evaluated = train::evaluation_graph(graph, options);
    const auto evaluation = [&](Weights weights) {
      return lower(tuner, [&, weights](const plan::Target& target) {
        return step::evaluation_program(target, evaluated, layout_, precision_, weights);
      });
    };
    evaluation_ = evaluation(Weights::current);
    if (average_decay_ > 0) averaged_evaluation_ = evaluation(Weights::averaged);
  }
  place_data(options);
  training_ = lower(tuner, [&](const plan::Target& target) {
    return step::training_program(target, graph_, layout_, step_options());
  });
  make_buffers(options);
  make_slots();
  const std::string all(1, '*');
  watch_.stop = precision_.stop_on;
  watch_.keep = precision_.stop_on.any() ? all : options.trace;
  if (precision_.stop_on.any()) watch_.statistics = all;
  if (!watch_.keep.empty()) make_recorded();
  summarize();
  summary_.arena_bytes_kept = options.recompute.empty() ? summary_.arena_bytes : arena_bytes_kept(graph, options);
  initialize(seed_);
}

Trainer::Impl::~Impl() = default;

/// Lowers a program by rule, and again where some of its choices turn out better otherwise.
step::StepProgram Trainer::Impl::lower(tune::Tuner& tuner,
                                       const std::function<step::StepProgram(const plan::Target&)>& program) {
  step::StepProgram made = program(target_);
  return tuner.settle(made.plan.program.choices, target_) ? program(target_) : made;
}

/// Decides whether the training set is kept on the device.
void Trainer::Impl::place_data(const TrainerOptions& options) {
  if (options.training_set == nullptr) return;
  if (!options.feed) fail("trainer", "expected a feed with a training set, got none", "it says which inputs to fill");
  set_ = options.training_set;
  if (set_->count < step_batch()) {
    fail("trainer",
         fmt::format("expected a training set of at least one batch of {}, got {} samples in '{}'", step_batch(),
                     set_->count, set_->name),
         "make the batch smaller");
  }
  train::check_classes(*set_, graph_.ir, graph_.samples->labels);
  const vk::Capabilities& capabilities = context_.capabilities();
  std::uint64_t limit = std::min(
      {context_.target().max_storage_range, capabilities.max_buffer_bytes, vk::memory_bytes(capabilities) / 2});
  if (options.resident_limit != 0) limit = std::min(limit, options.resident_limit);
  const std::uint64_t bytes =
      step::label_offset(static_cast<std::uint64_t>(set_->sample_bytes()), static_cast<std::uint64_t>(set_->count)) +
      4 * static_cast<std::uint64_t>(set_->count);
  if (bytes > limit) return;
  graph_.samples->resident = static_cast<std::uint32_t>(set_->count);
  store_form_.data_bytes = summary_.data_bytes = bytes;
}

void Trainer::Impl::make_buffers(const TrainerOptions& options) {
  namespace buffers = state::buffers;
  for (plan::BufferId i = 0; i < buffers_.size(); ++i) {
    const state::BufferRow& row = buffers::table[i];
    if (row.bytes != nullptr)
      buffers_[i] = vk::Buffer(context_, row.bytes(store_form_), row.memory, std::string(row.name));
  }
  buffers_[buffers::arena] = vk::Buffer(
      context_,
      std::max({training_.plan.arena.bytes, evaluation_.plan.arena.bytes, averaged_evaluation_.plan.arena.bytes}),
      vk::Memory::device, "arena");
  vk::upload(context_, buffers_[state::buffers::schedule], 0, as_bytes_of(store_form_.rates));
  // The padding between parameters is never written again, and must not count as an overflow.
  vk::fill(context_, buffers_[state::buffers::gradients], 0, buffers_[state::buffers::gradients].bytes(), 0);
  if (summary_.data_bytes > 0) {
    vk::upload(context_, buffers_[state::buffers::data], 0, as_bytes_of(options.training_set->samples));
    vk::upload(
        context_, buffers_[state::buffers::data],
        step::label_offset(static_cast<std::uint64_t>(set_->sample_bytes()), static_cast<std::uint64_t>(set_->count)),
        as_bytes_of(set_->labels));
  }
}

/// As a recording takes them, in the order of StepBuffer.
std::array<const vk::Buffer*, state::buffers::table.size()> Trainer::Impl::buffers() const {
  std::array<const vk::Buffer*, state::buffers::table.size()> result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = &buffers_[i];
  return result;
}

void Trainer::Impl::make_slots() {
  training_slots_ = std::make_unique<step::Slots>(context_, pipelines_, timeline_, training_, buffers(),
                                                  [this](const step::Slot& slot) { read_report(slot); });
  const auto evaluation_slots = [&](const step::StepProgram& program) {
    return std::make_unique<step::Slots>(context_, pipelines_, timeline_, program, buffers(),
                                         [this](const step::Slot& slot) { read_evaluation(slot); });
  };
  if (batch_shape_.empty()) return;
  evaluation_slots_ = evaluation_slots(evaluation_);
  if (average_decay_ > 0) averaged_slots_ = evaluation_slots(averaged_evaluation_);
}

/// Makes the order of samples from the seed, taken up at `first_step`, when `drawn` batches were drawn.
void Trainer::Impl::start_sampling(std::uint64_t first_step, std::int64_t drawn) {
  submitted_ = first_step;
  drawn_ahead_ = drawn - static_cast<std::int64_t>(first_step);
  if (set_ == nullptr) return;
  sampler_ = BatchSampler::training(set_->count, step_batch(), seed_);
  if (graph_.samples->resident) return;
  if (ring_) waits_for_batch_ += ring_->waits();
  ring_ = std::make_unique<data::UploadRing>(
      [set = set_, sampler = *sampler_](std::int64_t step, data::HostBatch& batch) mutable {
        data::gather(*set, sampler.batch(step), batch);
      },
      drawn);
}

void Trainer::Impl::summarize() {
  summary_.parameters = layout_.parameters.count();
  summary_.dispatches = training_.plan.program.dispatches.size();
  summary_.barriers = training_.plan.barriers();
  summary_.arena_bytes = training_.plan.arena.bytes;
  summary_.arena_bytes_unshared = training_.plan.arena.bytes_unshared;
  for (const plan::Dispatch& dispatch : training_.plan.program.dispatches) {
    const std::uint64_t moved = plan::bytes_touched(training_.plan.program, dispatch);
    summary_.flops += dispatch.flops;
    summary_.bytes_moved += moved;
    if (!dispatch.again) continue;
    summary_.flops_again += dispatch.flops;
    summary_.bytes_moved_again += moved;
  }
  namespace buffers = state::buffers;
  summary_.gradient_bytes =
      store_bytes(buffers::gradients) + store_bytes(buffers::gradient_sums) + store_bytes(buffers::gradient_scales);
  summary_.weight_bytes = store_bytes(buffers::weights) + store_bytes(buffers::masters);
  summary_.optimizer_bytes = store_bytes(buffers::moments);
  summary_.average_bytes = store_bytes(buffers::averages) + store_bytes(buffers::averaged_weights);
  for (const step::StepProgram* program : {&training_, &evaluation_, &averaged_evaluation_}) {
    summary_.peak_bytes += 2 * (program->slot.size + program->report_bytes);
  }
  for (const vk::Buffer& buffer : buffers_) summary_.peak_bytes += buffer.bytes();
}

/// What the arena would take if nothing were computed again.
std::uint64_t Trainer::Impl::arena_bytes_kept(const Graph& graph, TrainerOptions options) const {
  options.recompute.clear();
  options.log = {};
  const step::StepGraph kept = train::training_graph(graph, options);
  return step::training_program(target_, kept, layout_, step_options()).plan.arena.bytes;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

Trainer Trainer::compile(const Device& device, const Graph& graph, TrainerOptions options) {
  return Trainer(std::make_unique<Impl>(device, graph, options));
}

void Trainer::step() {
  impl_->step();
}
void Trainer::step(const std::map<std::string, Values>& inputs) {
  impl_->step(inputs);
}
StepReport Trainer::report() {
  return impl_->report();
}
void Trainer::finish() {
  impl_->finish();
}
StepTotals Trainer::take_totals() {
  return impl_->take_totals();
}
Evaluation Trainer::evaluate(const Dataset& set, Weights weights) {
  return impl_->evaluate(set, weights);
}
void Trainer::save(const std::filesystem::path& path) {
  impl_->checkpoint({}).write(path);
}
Checkpoint Trainer::checkpoint(const std::map<std::string, std::string>& notes) {
  return impl_->checkpoint(notes);
}
void Trainer::save_weights(const std::filesystem::path& path, Weights weights) {
  impl_->save_weights(path, weights);
}
LoadReport Trainer::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  return impl_->load_weights(path, options);
}
ResumePoint Trainer::load(const std::filesystem::path& path) {
  return impl_->load(path);
}
std::vector<float> Trainer::parameter(std::string_view name, Weights weights) {
  return impl_->parameter(name, weights);
}
void Trainer::set_parameter(std::string_view name, std::span<const float> values) {
  impl_->set_parameter(name, values);
}
void Trainer::watch(std::string_view pattern, std::uint64_t every) {
  impl_->watch(pattern, every);
}
std::vector<TensorStatistics> Trainer::take_records() {
  return impl_->take_records();
}
std::vector<float> Trainer::trace(std::string_view name) {
  return impl_->trace(name);
}
const PlanSummary& Trainer::summary() const {
  return impl_->summary();
}
HostCosts Trainer::host_costs() const {
  return impl_->host_costs();
}
std::vector<DispatchCost> Trainer::profile(std::int64_t steps) {
  return impl_->profile(steps);
}
std::vector<DispatchCost> Trainer::profile(std::int64_t steps, const std::map<std::string, Values>& inputs) {
  return impl_->profile(steps, inputs);
}
std::string Trainer::plan() const {
  return impl_->plan();
}
std::string Trainer::explain() const {
  return impl_->explain();
}

}  // namespace halfstep
