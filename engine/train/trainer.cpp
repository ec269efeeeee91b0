#include <halfstep/error.h>
#include <halfstep/inspector.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/held.h"
#include "train/about_model.h"
#include "train/feed.h"
#include "train/profile.h"
#include "train/step_graph.h"
#include "train/texts.h"
#include "train/trainer_impl.h"
#include "train/training_data.h"
#include "vk/command/memory.h"

namespace halfstep {
namespace {

/// Whether the device keeps so many bytes of a training set.
bool fits(const run::Runtime& runtime, std::uint64_t bytes, const TrainerOptions& options) {
  const vk::Context& context = runtime.context();
  const vk::Capabilities& capabilities = context.capabilities();
  // Four bindings of the widest that programs have are left beside the other operands of a feed.
  std::uint64_t limit = std::min({context.target().max_storage_range, 4 * runtime.target.max_storage_range,
                                  capabilities.max_buffer_bytes, vk::memory_bytes(capabilities) / 2});
  if (options.memory_limit != 0) limit = std::min(limit, options.memory_limit / 2);
  if (options.resident_limit != 0) limit = std::min(limit, options.resident_limit);
  return bytes <= limit;
}

state::StoreSpec store_spec(const step::StepGraph& graph, const TrainerOptions& options, const step::Share& largest) {
  state::StoreSpec spec{.layout = step::layout_of(graph),
                        .precision = options.precision,
                        .weights = state::weight_storage(options.precision),
                        .micro_batches = largest.count,
                        .exchanged = options.ranks.exchange_gradients(),
                        .averages = options.ema_decay > 0};
  if (options.ranks.share_state()) {
    spec.exchange = options.ranks.exchange;
    spec.layout.shard.emplace(spec.layout.parameters, spec.weights, options.ranks);
  }
  return spec;
}

/// The state that the first step finds.
state::RunState first_state(const Precision& precision, const std::vector<Optimizer>& optimizers, std::uint64_t seed) {
  state::RunState state;
  state.step.loss_scale = precision.loss_scale.initial;
  state.step.seed[0] = static_cast<std::uint32_t>(seed);
  state.step.seed[1] = static_cast<std::uint32_t>(seed >> 32);
  state.step.rate = optimizers.front()->rate().rates.front();
  for (std::size_t i = 1; i < optimizers.size(); ++i) {
    state.optimizers.emplace_back().rate = optimizers[i]->rate().rates.front();
  }
  return state;
}

/// 0 if it is not known.
std::int64_t batch_of(const step::StepGraph& graph) {
  if (graph.samples) return graph.samples->batch;
  for (const graph::ValueId input : graph.ir.of(graph::Origin::input)) {
    const Shape& shape = graph.ir.values[input].type.shape;
    if (!shape.empty()) return shape.front();
  }
  return 0;
}

/// What the step's part of the arena would be if nothing were computed again.
std::uint64_t arena_bytes_kept(const plan::Target& target, const state::StoreLayout& layout,
                               const train::BucketGraph& graph, const step::Share& share) {
  TrainerOptions options = graph.options;
  options.recompute.clear();
  options.log = {};
  const step::StepGraph kept = train::training_graph(*graph.graph, options, graph.length);
  return step::training_program(target, kept, layout, options, share).plan.arena.bytes;
}

}  // namespace

Trainer::Impl::Impl(const Device& device, Origin& of)
    : origin(of),
      options(of.options),
      workspace{{std::make_shared<run::Runtime>(device, options.precision.reproducible), nullptr}} {
  const std::vector<train::BucketGraph> graphs = train::bucket_graphs(origin.graph, options);
  for (const train::BucketGraph& graph : graphs) train::check_values(*graph.graph, graph.options);
  train::check_options(options);
  train::check_ranks(options);
  balancer = std::make_unique<train::Balancer>(options);
  for (const train::BucketGraph& graph : graphs) {
    parts.push_back(std::make_unique<Part>());
    parts.back()->graph = train::training_graph(*graph.graph, graph.options, graph.length);
  }
  train::check_shared_state(own().graph, options);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    train::check_bucket(parts[i]->graph, own().graph, graphs[i].length);
  }
  if (options.log) {
    const std::vector<Optimizer>& optimizers = own().graph.optimizers;
    for (const std::string& line : train::hyperparameter_notes(options, optimizers)) options.log(line);
  }
  workspace.runtime->pipelines.ask(options.cancel);
  try {
    compile(graphs);
  } catch (const vk::AskFailed& failed) {
    std::rethrow_exception(failed.thrown);
  }
  workspace.runtime->pipelines.ask({});
}

void Trainer::Impl::compile(const std::vector<train::BucketGraph>& graphs) {
  const step::Share largest = balancer->largest_share();
  state::StoreSpec spec = store_spec(own().graph, options, largest);
  if (spec.weights.scaled) state::gradient_scales::check_count(spec.layout.parameters);
  run::Runtime& runtime = *workspace.runtime;
  place_data(spec);
  // By rule first: kernels are not measured at sizes that there is no memory for.
  const Lowered by_rule =
      lower(graphs, spec, largest, [&](const Program& program) { return program(workspace.runtime->target); });
  need_of(spec, by_rule).check(runtime.context(), options.memory_limit);
  Lowered lowered = lower_tuned(graphs, spec);
  const train::MemoryNeed need = need_of(spec, lowered);
  need.check(runtime.context(), options.memory_limit);
  summarize(graphs.back(), spec, lowered, need.arena());
  try {
    make_programs(std::move(spec), std::move(lowered));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    throw Error(need.explain(error.what(), runtime.context()), error.code());
  }
  if (rank_exchange) {
    train::check_agreement(origin.graph, own().graph, options);
    rank_exchange->compare_devices();
  }
  workspace.store->initialize(options.seed);
  workspace.store->write_state(first_state(options.precision, own().graph.optimizers, options.seed));
  if (local_steps) local_steps->start(options.seed, 0);
  batches->start(options.seed, 0, 0);
}

/// With the kernels that were measured to be the fastest. By rule again where these need memory that there is not: the
/// rule's fit.
Trainer::Impl::Lowered Trainer::Impl::lower_tuned(const std::vector<train::BucketGraph>& graphs,
                                                  const state::StoreSpec& spec) {
  run::Runtime& runtime = *workspace.runtime;
  const auto lowered_by = [&](tune::Tuner& tuner) {
    return lower(graphs, spec, balancer->share(),
                 [&](const Program& program) { return tuner.settled(runtime.target, program); });
  };
  tune::Tuner tuner(runtime.context(), runtime.pipelines);
  Lowered measured = lowered_by(tuner);
  try {
    need_of(spec, measured).check(runtime.context(), options.memory_limit);
    return measured;
  } catch (const train::TooLarge&) {
    if (runtime.target.choices.empty()) throw;
  }
  if (options.log) options.log("memory: kernels by rule, since the fastest ones need more than there is");
  runtime.target.choices.clear();
  tune::Tuner by_rule(runtime.context(), runtime.pipelines, Tuning::off, runtime.context().settings().cache_folder);
  return lowered_by(by_rule);
}

Trainer::Impl::Lowered Trainer::Impl::lower(const std::vector<train::BucketGraph>& graphs, const state::StoreSpec& spec,
                                            const step::Share& share, const Lower& made_of) const {
  const auto evaluations = [&](Weights weights) {
    std::vector<train::EvaluationProgram> made;
    for (const train::BucketGraph& graph : graphs) {
      step::StepGraph evaluated = train::evaluation_graph(*graph.graph, graph.options, graph.length);
      step::StepProgram lowered = made_of([&](const plan::Target& target) {
        return step::evaluation_program(target, evaluated, spec.layout, options.precision, weights);
      });
      made.push_back({std::move(evaluated), std::move(lowered)});
    }
    return made;
  };
  Lowered lowered;
  if (options.feed) lowered.evaluation = evaluations(Weights::current);
  if (options.feed && spec.averages) lowered.averaged = evaluations(Weights::averaged);
  for (const auto& part : parts) {
    lowered.training.push_back(made_of([&](const plan::Target& target) {
      return step::training_program(target, part->graph, spec.layout, options, share);
    }));
  }
  return lowered;
}

/// Decides where steps draw their batches from, and whether a training set is kept on the device.
void Trainer::Impl::place_data(state::StoreSpec& spec) {
  const Dataset* set = options.training_set;
  if ((set != nullptr || options.source != nullptr) && !options.feed) {
    fail("trainer", "expected a feed with a training set, got none", "it says which inputs to fill");
  }
  const step::StepGraph& graph = own().graph;
  if (graph.samples) spec.data_bytes = graph.samples->table_bytes;
  if (set != nullptr) return place_set(spec);
  const std::int64_t batch = graph.samples ? elements({options.accumulate, graph.samples->batch}) : 0;
  std::optional<train::Supply> supply;
  if (options.source != nullptr) supply = train::source_supply(*options.source, graph, batch);
  batches = std::make_unique<train::Batches>(std::move(supply), batch * options.ranks.size(), balancer->share());
}

void Trainer::Impl::place_set(state::StoreSpec& spec) {
  const Dataset& set = *options.training_set;
  std::vector<std::vector<Field>> fields;
  std::vector<step::SampleInputs> resident;
  std::uint64_t bytes = 0;
  for (const auto& part : parts) {
    fields.push_back(train::fed_fields("feed", set, part->graph));
    resident.push_back(*part->graph.samples);
    bytes = train::place_resident(resident.back(), fields.back());
  }
  train::Supply supply = train::set_supply(set, std::move(fields), train::buckets_of(set, train::lengths_of(options)));
  if (fits(*workspace.runtime, bytes, options)) {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->graph.samples = std::move(resident[i]);
    spec.data_bytes = bytes;
    supply.gather = nullptr;
  }
  const std::int64_t batch = elements({options.accumulate, own().graph.samples->batch});
  batches = std::make_unique<train::Batches>(std::move(supply), batch * options.ranks.size(), balancer->share());
}

std::vector<const step::StepProgram*> Trainer::Impl::Lowered::evaluations() const {
  std::vector<const step::StepProgram*> all;
  for (const auto* programs : {&evaluation, &averaged}) {
    for (const train::EvaluationProgram& made : *programs) all.push_back(&made.lowered);
  }
  return all;
}

train::MemoryNeed Trainer::Impl::need_of(const state::StoreSpec& spec, const Lowered& lowered) const {
  train::MemoryNeed need(spec, lowered.training.back(), batch_of(own().graph));
  for (std::size_t i = 0; i + 1 < lowered.training.size(); ++i) need.add(lowered.training[i]);
  for (const step::StepProgram* evaluation : lowered.evaluations()) need.add_evaluation(*evaluation);
  return need;
}

void Trainer::Impl::summarize(const train::BucketGraph& graph, const state::StoreSpec& spec, const Lowered& lowered,
                              const plan::Arena& arena) {
  summary = train::summarize(lowered.training.back().plan, spec);
  summary.arena_bytes = summary.arena_bytes_kept = arena.bytes;
  summary.arena_bytes_unshared = arena.bytes_unshared;
  if (options.recompute.empty()) return;
  summary.arena_bytes_kept = arena_bytes_kept(workspace.runtime->target, spec.layout, graph, balancer->share());
  for (const step::StepProgram* evaluation : lowered.evaluations()) {
    summary.arena_bytes_kept = std::max(summary.arena_bytes_kept, evaluation->plan.arena.bytes);
  }
}

void Trainer::Impl::make_programs(state::StoreSpec spec, Lowered lowered) {
  workspace.runtime->shared_arena(summary.arena_bytes);
  workspace.store = std::make_shared<state::ParameterStore>(workspace.runtime->context(), std::move(spec));
  const std::optional<step::SampleInputs>& samples = own().graph.samples;
  if (samples) train::upload(workspace.runtime->context(), *workspace.store, *samples, options.training_set);
  std::vector<std::string> metrics;
  for (const auto& [name, metric] : options.metrics) metrics.push_back(name);
  reports = std::make_unique<train::Reports>(metrics, options);
  if (options.ranks.size() > 1) rank_exchange = std::make_unique<train::RankExchange>(workspace, options, *balancer);
  if (rank_exchange && !options.ranks.exchange_gradients()) {
    local_steps = std::make_unique<train::LocalSteps>(workspace, options);
  }
  summary.peak_bytes = workspace.store->bytes() + workspace.runtime->arena->bytes();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = *parts[i];
    make_training(part, std::move(lowered.training[i]));
    summary.peak_bytes += part.training->slot_bytes();
    part.recorder = std::make_unique<train::Recorder>(workspace, part.graph, options, *balancer, *reports, *batches,
                                                      [this](run::Program& program) {
                                                        if (rank_exchange) rank_exchange->take_part(program);
                                                      });
  }
  make_evaluators(lowered, metrics);
  checkpoints = std::make_unique<train::Checkpoints>(*workspace.store, options, *batches, train::about_model(options));
}

void Trainer::Impl::make_evaluators(Lowered& lowered, const std::vector<std::string>& metrics) {
  const auto make = [&](std::unique_ptr<train::Evaluator>& made, std::vector<train::EvaluationProgram>& programs) {
    if (programs.empty()) return;
    made = std::make_unique<train::Evaluator>(workspace, std::move(programs), metrics, train::lengths_of(options),
                                              options.ranks);
    summary.peak_bytes += made->slot_bytes();
  };
  make(evaluator, lowered.evaluation);
  make(averaged_evaluator, lowered.averaged);
}

Trainer::Trainer(std::unique_ptr<Origin> origin) : origin_(std::move(origin)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&& other) noexcept {
  impl_ = std::move(other.impl_);  // before its origin, which it refers to
  origin_ = std::move(other.origin_);
  return *this;
}

Trainer Trainer::compile(const Device& device, const Graph& graph, TrainerOptions options) {
  Trainer trainer(std::make_unique<Origin>(graph, options));
  trainer.impl_ = std::make_unique<Impl>(device, *trainer.origin_);
  return trainer;
}

Trainer::Origin& Trainer::origin() const {
  return held(origin_, "trainer", "a trainer that holds a model");
}

Trainer::Impl& Trainer::impl() const {
  origin();
  if (!impl_) fail("trainer", "expected a trainer with a device, got one that could not be reopened");
  return *impl_;
}

void Trainer::step() {
  impl().together([](Impl& made) { made.step(made.from_supply()); });
}
void Trainer::record(void* command_buffer) {
  if (command_buffer == nullptr) fail("trainer", "expected the application's command buffer, got null");
  impl().record(static_cast<VkCommandBuffer>(command_buffer));
}
void Trainer::executed() {
  impl().executed();
}
void Trainer::step(const std::map<std::string, Values>& inputs) {
  impl().together([&](Impl& made) { made.step(made.from_values(inputs)); });
}
bool Trainer::run_for(std::chrono::nanoseconds budget) {
  if (budget.count() <= 0) fail("trainer", fmt::format("expected a positive budget, got {} ns", budget.count()));
  return impl().run_for(std::chrono::duration<double>(budget).count(), impl().from_supply());
}
StepReport Trainer::report() {
  impl().together([](Impl& made) { made.poll(); });
  return impl().reports->latest();
}
void Trainer::finish() {
  impl().together([](Impl& made) { made.finish(); });
}
StepTotals Trainer::take_totals() {
  finish();
  return impl().reports->take_totals();
}
void Trainer::synchronise() {
  impl().together([](Impl& made) { made.synchronise(); });
}
Evaluation Trainer::evaluate(const Dataset& set, Weights weights, const std::function<bool()>& stop) {
  return impl().together([&](Impl& made) { return made.evaluate(set, weights, stop); });
}
void Trainer::save(const std::filesystem::path& path) {
  const Checkpoint taken = checkpoint();
  if (impl().writes_files()) taken.write(path);
}
Checkpoint Trainer::checkpoint(const std::map<std::string, std::string>& notes) {
  return impl().together([&](Impl& made) { return made.checkpoint(notes); });
}
void Trainer::save_weights(const std::filesystem::path& path, Weights weights) {
  const Checkpoint taken = impl().together([&](Impl& made) { return made.weights_only(weights); });
  if (impl().writes_files()) taken.write(path);
}
LoadReport Trainer::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  return impl().together([&](Impl& made) { return made.load_weights(path, options); });
}
ResumePoint Trainer::load(const std::filesystem::path& path) {
  const ResumePoint point =
      impl().together([&](Impl& made) { return made.load(io::SafetensorsFile(path), path.string()); });
  origin().snapshot.reset();
  return point;
}
ResumePoint Trainer::load(const Checkpoint& checkpoint) {
  const ResumePoint point =
      impl().together([&](Impl& made) { return made.load(checkpoint.contents().file(), "the checkpoint"); });
  origin().snapshot.reset();
  return point;
}
std::vector<float> Trainer::parameter(std::string_view name, Weights weights) {
  return impl().together([&](Impl& made) { return made.parameter(name, weights); });
}
void Trainer::set_parameter(std::string_view name, std::span<const float> values) {
  impl().together([&](Impl& made) { made.set_parameter(name, values); });
}
Inspector Trainer::inspect() const {
  return Inspector(impl());
}

const Trainer::Workspace& Trainer::workspace() const {
  return impl().workspace;
}

}  // namespace halfstep
