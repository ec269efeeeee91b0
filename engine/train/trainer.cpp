#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "step/gradient_scales.h"
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
  layout_ = step::StepLayout(graph_);
  if (precision_.gradient_scales == GradientScales::per_tensor) step::gradient_scales::check_count(layout_.parameters);
  form_ = step::weight_form(precision_, optimizer_);
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
  summary_.data_bytes = bytes;
}

void Trainer::Impl::make_buffers(const TrainerOptions& options) {
  const std::uint64_t elements = layout_.parameters.padded_elements();
  const auto compute = static_cast<std::uint64_t>(bytes(form_.compute));
  const Schedule& schedule = optimizer_->rate();
  const auto make = [&](step::StepBuffer buffer, std::uint64_t size, const char* name) {
    buffers_[buffer] = vk::Buffer(context_, size, vk::Memory::device, name);
  };
  make(step::arena,
       std::max({training_.plan.arena.bytes, evaluation_.plan.arena.bytes, averaged_evaluation_.plan.arena.bytes}),
       "arena");
  make(step::state, sizeof(step::StepState), "step state");
  make(step::schedule, schedule.rates.size() * sizeof(float), "schedule");
  make(step::weights, elements * compute, "weights");
  make(step::masters, form_.copy ? layout_.parameters.master_elements() * 4 : 0, "master weights");
  make(step::gradients, layout_.parameters.trained_elements() * compute, "gradients");
  make(step::sums, sum_bytes(), "gradient sums");
  make(step::scales, scale_bytes(), "gradient scales");
  make(step::moments, moment_bytes(), "optimizer moments");
  make(step::averages, average_bytes(), "averages of weights");
  make(step::averaged, averaged_bytes(), "averaged weights");
  make(step::states, layout_.states.padded_elements() * 4, "states");
  make(step::next, layout_.states.padded_elements() * 4 * next_state_stores(), "next states");
  make(step::data, summary_.data_bytes, "training set");
  vk::upload(context_, buffers_[step::schedule], 0, as_bytes_of(schedule.rates));
  // The padding between parameters is never written again, and must not count as an overflow.
  vk::fill(context_, buffers_[step::gradients], 0, buffers_[step::gradients].bytes(), 0);
  if (summary_.data_bytes > 0) {
    vk::upload(context_, buffers_[step::data], 0, as_bytes_of(options.training_set->samples));
    vk::upload(
        context_, buffers_[step::data],
        step::label_offset(static_cast<std::uint64_t>(set_->sample_bytes()), static_cast<std::uint64_t>(set_->count)),
        as_bytes_of(set_->labels));
  }
}

/// Of the sums of gradients over micro-batches.
std::uint64_t Trainer::Impl::sum_bytes() const {
  return accumulate_ > 1 ? layout_.parameters.trained_elements() * 4 : 0;
}

/// Of the scales of gradients.
std::uint64_t Trainer::Impl::scale_bytes() const {
  return form_.scaled ? step::gradient_scales::buffer_bytes(layout_.parameters) : 0;
}

std::uint64_t Trainer::Impl::average_bytes() const {
  return average_decay_ > 0 ? layout_.parameters.trained_elements() * 4 : 0;
}

/// Of the averages as evaluation reads them, where it does not read the averages themselves.
std::uint64_t Trainer::Impl::averaged_bytes() const {
  const bool apart = average_decay_ > 0 && !batch_shape_.empty() && form_.compute == DType::f16;
  return apart ? layout_.parameters.trained_elements() * 2 : 0;
}

std::uint64_t Trainer::Impl::moment_bytes() const {
  return layout_.parameters.trained_elements() * static_cast<std::uint64_t>(bytes(form_.moments)) *
         form_.moments_per_element;
}

/// As a recording takes them, in the order of StepBuffer.
std::array<const vk::Buffer*, step::buffer_count> Trainer::Impl::buffers() const {
  std::array<const vk::Buffer*, step::buffer_count> result{};
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
  const std::uint64_t elements = layout_.parameters.padded_elements();
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
  const auto compute = static_cast<std::uint64_t>(bytes(form_.compute));
  summary_.gradient_bytes = layout_.parameters.trained_elements() * compute + sum_bytes() + scale_bytes();
  summary_.weight_bytes = elements * compute + (form_.copy ? layout_.parameters.master_elements() * 4 : 0);
  summary_.optimizer_bytes = moment_bytes();
  summary_.average_bytes = average_bytes() + averaged_bytes();
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
