#include "step/step_program.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "state/buffers.h"
#include "step/report.h"
#include "step/shared_tensors.h"
#include "step/stages.h"
#include "step/watcher.h"

namespace halfstep::step {
namespace {

namespace buffers = state::buffers;

/// Where the gradient of the loss lies in the state: a scalar tensor takes a quad.
constexpr std::uint64_t loss_scale_place = offsetof(state::StepState, loss_scale);
static_assert(offsetof(state::StepState, padding) == loss_scale_place + 4);

class Builder {
 public:
  Builder(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
          const Precision& precision, const Share& share = {}, const Watch& watch = {}, bool synchronised = false)
      : graph_(graph),
        layout_(layout),
        precision_(precision),
        target_(target),
        parts_(layout, state::weight_storage(precision), target.part_bytes),
        share_(share),
        builder_(target, {.partials = precision.partials, .statistics = over_ranks(synchronised)}),
        state_(place_buffers()),
        shared_(builder_, graph),
        inputs_(builder_, graph, state_, share),
        watcher_(builder_, graph.ir, watch, share.count, report_bytes_),
        updated_states_(updated_states()) {
    builder_.stores().key_noise(builder_.place_bytes("noise key", sizeof(state::StepState), {buffers::state, 0}));
    if (has_scales())
      builder_.stores().key_scales(
          builder_.place_bytes("scales", state::gradient_scales::table_bytes, {buffers::gradient_scales, 0}));
    for (const graph::ValueId parameter : graph.parameters) bind_parameter(parameter);
    place_outputs();
    builder_.values().number(share.before);
    begin_micro_batch();
  }

  /// Has operators read the averages of the trained weights.
  void read_averages() {
    for (const graph::ValueId parameter : graph_.parameters) {
      const state::ParameterEntry& place = entry_of(layout_.parameters, parameter);
      if (place.training.frozen) continue;
      const bool rounded = is_narrow(place.type.dtype);
      bind(parameter, place, place.name, place.type.dtype,
           {rounded ? buffers::averaged_weights : buffers::averages, 0});
    }
    const DType read = precision_.parameters;
    if (!is_narrow(read)) return;
    builder_.stores().set(Rounding::nearest, precision_.overflow);
    const std::uint64_t narrow = 4 * static_cast<std::uint64_t>(bytes(read));
    const BoundQuads bound[] = {{buffers::averages, 0, 16}, {buffers::averaged_weights, 0, narrow}};
    for (const Chunk& chunk : cut(target_, parts_, layout_.parameters.trained_elements() / 4, bound)) {
      const Shape shape{static_cast<std::int64_t>(4 * chunk.count)};
      feed_values(builder_, builder_.place("averages", {DType::f32, shape}, {buffers::averages, 16 * chunk.first}),
                  builder_.place("averaged weights", {read, shape}, {buffers::averaged_weights, narrow * chunk.first}));
    }
    builder_.stores().set(precision_.rounding.activations, precision_.overflow);
  }

  /// Goes on to the step's next micro-batch.
  void next_micro_batch() {
    ++micro_batch_;
    builder_.values().repeat(graph_.ir);
    lowered_.clear();
    begin_micro_batch();
  }

  /// Feeds the current micro-batch; `augmented` in training.
  void feed(bool augmented) {
    builder_.phase(plan::Phase::feed);
    inputs_.feed(micro_batch_, augmented);
    shared_.read(micro_batch_);
  }

  void forward() {
    builder_.phase(plan::Phase::forward);
    std::vector<graph::ValueId> wanted = graph_.outputs;
    for (std::size_t i = 0; i < reported_.size(); ++i) {
      const graph::Value& value = graph_.ir.values[wanted[i]];
      const std::uint64_t place = reported_[i].places[share_.first_reported() + micro_batch_];
      builder_.values().bind(wanted[i], builder_.place(value.name, value.type, {buffers::report, place}));
    }
    for (const graph::ValueId value : graph_.stored) {
      bind_parameter(value);
      wanted.push_back(value);
    }
    for (const graph::Update& update : graph_.ir.updates) {
      wanted.push_back(update.next);
      if (graph_.ir.values[update.state].origin == graph::Origin::cache) {
        builder_.values().bind(update.next, builder_.values().tensor_of(graph_.ir, update.state));  // in place
        continue;
      }
      // By its own name, as copies that are recomputed have it: it keys the noise of what its operator makes for
      // itself.
      bind(update.next, entry_of(layout_.states, update.state), graph_.ir.values[update.next].name, DType::f32,
           next_states(micro_batch_));
    }
    for (const graph::ValueId input : graph_.ir.of(graph::Origin::input)) watcher_.look(input, {"feed"}, micro_batch_);
    run(wanted, precision_.rounding.activations);
    shared_.write();
  }

  void begin_backward() {
    builder_.values().bind(graph_.loss_scale,
                           builder_.place("loss_scale", {DType::f32, {}}, {buffers::state, loss_scale_place}));
    for (std::size_t i = 0; i < graph_.parameter_gradients.size(); ++i) bind_gradient(i);
  }

  /// The gradients of a bucket, added to those of the micro-batches before.
  void backward(const state::Bucket& bucket, const TrainerOptions& options) {
    builder_.phase(plan::Phase::backward);
    run(std::span(graph_.parameter_gradients).subspan(bucket.first, bucket.end - bucket.first),
        precision_.rounding.gradients);
    builder_.phase(plan::Phase::update);
    accumulate_gradients(stage_context(options), {bucket.first_element / 4, bucket.elements / 4});
  }

  void backward_whole(const TrainerOptions& options) {
    backward({0, graph_.parameter_gradients.size(), 0, layout_.parameters.trained_elements()}, options);
  }

  /// The last micro-batch of a step whose gradients are exchanged: each bucket is awaited as soon as it is complete.
  void backward_exchanged(const TrainerOptions& options) {
    for (const state::Bucket& bucket : state::buckets_of(layout_.parameters, options.ranks.bucket_bytes)) {
      backward(bucket, options);
      exchanged_.emplace_back(ExchangeBucket{bucket.first_element, bucket.elements});
      if (bucket.first == 0) offer_states(stage_context(options));
      builder_.await();
    }
    // What follows is the same on every rank, with the noise that one process would draw for it.
    builder_.values().number(share_.all - 1);
  }

  /// Runs a stage that follows the backward pass of the current micro-batch.
  void run(Stage stage, const TrainerOptions& options) { stage(stage_context(options)); }

  /// Reports of a step that an application records may be read after later runs have begun.
  void keep_reports() {
    if (shared_.buffers().empty()) return;
    kept_from_ = report_bytes_;
    report_bytes_ += kept_reports * report_bytes_;
    keep_report(builder_, kept_from_);
  }

  StepProgram finish() {
    plan::ArenaOptions arena = plan::arena_options(target_);
    arena.alignment = std::max<std::uint64_t>(arena.alignment, 64);
    return {.plan = plan::make_plan(builder_.finish(), arena),
            .slot = inputs_.slot(),
            .reported = std::move(reported_),
            .report_bytes = report_bytes_,
            .kept_from = kept_from_,
            .watched = watcher_.take(),
            .shared = shared_.buffers(),
            .exchanged = std::move(exchanged_),
            .exchanged_gradients = layout_.parameters.trained_elements(),
            .share = share_};
  }

 private:
  /// The buffers of every program; returns the state's.
  plan::TensorId place_buffers() {
    for (std::size_t i = 1; i < buffers::table.size(); ++i) builder_.buffer(std::string(buffers::table[i].name));
    return builder_.place_bytes("state", layout_.state_bytes(), {buffers::state, 0});
  }

  /// How norms take statistics: over the micro-batches that all ranks compute at once, or each over its own.
  plan::RankStatistics over_ranks(bool synchronised) {
    if (!synchronised) return {};
    const auto exchange = [this](plan::TensorId own, plan::OverRanks kind, std::int64_t rows) {
      const plan::ProgramTensor info = builder_.info(own);
      const plan::TensorId all = builder_.place(info.name + " of ranks", info.type, {buffers::report, report_bytes_});
      exchanged_.emplace_back(ExchangedStatistics{report_bytes_, info.bytes / sizeof(float), kind, rows});
      report_bytes_ += next_place(info.bytes);
      builder_.alias(all, own, "exchange statistics");
      builder_.await();
      return all;
    };
    return {share_.ranks, exchange};
  }

  StageContext stage_context(const TrainerOptions& options) {
    builder_.stores().set(precision_.rounding.gradients, precision_.overflow);
    return {.builder = builder_,
            .state = state_,
            .layout = layout_,
            .parts = parts_,
            .options = options,
            .share = share_,
            .weights = state::weight_storage(options.precision),
            .micro_batch = micro_batch_,
            .next_states = next_states(micro_batch_),
            .updated_states = updated_states_,
            .counted = graph_.counted ? &*graph_.counted : nullptr,
            .counts = graph_.counted ? std::span<const std::uint64_t>(reported_.back().places)
                                     : std::span<const std::uint64_t>(),
            .found = found_};
  }

  bool has_scales() const { return precision_.gradient_scales == GradientScales::per_tensor; }

  void begin_micro_batch() {
    builder_.stores().set(precision_.rounding.activations, precision_.overflow);
    for (const graph::ValueId value : graph_.states) bind_state(value);
    for (const graph::ValueId value : graph_.caches) bind_cache(value);
  }

  /// A micro-batch finds the states that the graph updates as the one before it made them, and others, as the first one
  /// finds all, as the last update left them.
  void bind_state(graph::ValueId value) {
    const state::ParameterEntry& place = entry_of(layout_.states, value);
    const std::vector<graph::Update>& updates = graph_.ir.updates;
    const bool moves = std::ranges::find(updates, value, &graph::Update::state) != updates.end();
    bind(value, place, place.name, DType::f32,
         micro_batch_ > 0 && moves ? next_states(micro_batch_ - 1) : plan::Region{buffers::states, 0});
  }

  void bind_cache(graph::ValueId value) {
    const graph::Value& wanted = graph_.ir.values[value];
    const state::CacheLayout::Entry* entry = layout_.caches.find(wanted.name);
    if (entry == nullptr || entry->type != wanted.type) {
      fail("program",
           fmt::format("expected a cache '{}' {}, got {}", wanted.name, to_string(wanted.type),
                       entry == nullptr ? "none of that name" : to_string(entry->type)),
           "programs share caches by name");
    }
    builder_.values().bind(value, builder_.place(wanted.name, wanted.type, {buffers::caches, entry->offset}));
  }

  /// Where a micro-batch puts the next values of states: not where it reads those of the micro-batch before it.
  plan::Region next_states(std::uint32_t micro_batch) const {
    return {buffers::next_states, micro_batch % 2 * layout_.states.padded_elements() * 4};
  }

  /// The quads of the states that the graph gives next values; neighbours are one chunk.
  std::vector<Chunk> updated_states() const {
    const std::vector<state::ParameterEntry>& states = layout_.states.entries();
    std::vector<bool> updated(states.size());
    for (const graph::Update& update : graph_.ir.updates) {
      if (graph_.ir.values[update.state].origin == graph::Origin::cache) continue;
      updated[static_cast<std::size_t>(&entry_of(layout_.states, update.state) - states.data())] = true;
    }
    std::vector<Chunk> result;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!updated[i]) continue;
      const std::uint64_t end = i + 1 < states.size() ? states[i + 1].first_element : layout_.states.padded_elements();
      if (i == 0 || !updated[i - 1]) result.push_back({states[i].first_element / 4, 0});
      result.back().count = end / 4 - result.back().first;
    }
    return result;
  }

  void run(std::span<const graph::ValueId> wanted, Rounding rounding) {
    run_graph(graph_.ir, wanted, lowered_, [&](const graph::Node& node) {
      // What is computed again is rounded as it was, and has been seen by the recorder.
      builder_.stores().set(node.recomputed ? precision_.rounding.activations : rounding, precision_.overflow);
      builder_.lower(graph_.ir, node);
      if (node.recomputed) return;
      const Producer producer{plan::label_of(node), node.op->divides(), node.inputs};
      for (const graph::ValueId output : node.outputs) watcher_.look(output, producer, micro_batch_);
    });
  }

  /// The place of the parameter or state of the same name, which the store may have been made for in another graph.
  const state::ParameterEntry& entry_of(const state::ParameterLayout& layout, graph::ValueId value) const {
    const graph::Value& wanted = graph_.ir.values[value];
    const state::ParameterEntry* entry = layout.find(wanted.name);
    if (entry != nullptr && entry->type == wanted.type) return *entry;
    fail("program",
         fmt::format("expected a store with '{}' {}, got {}", wanted.name, to_string(wanted.type),
                     entry == nullptr ? "none of that name" : to_string(entry->type)),
         "programs share weights by name");
  }

  /// A value in `store`, at the place of a parameter or state.
  void bind(graph::ValueId value, const state::ParameterEntry& place, std::string name, DType dtype,
            plan::Region store) {
    store.offset += place.first_element * static_cast<std::uint64_t>(bytes(dtype));
    builder_.values().bind(value, builder_.place(std::move(name), {dtype, place.type.shape}, store));
  }

  /// An f32 parameter of a policy whose others are f16 is in the masters.
  void bind_parameter(graph::ValueId value) {
    state::ParameterEntry place = entry_of(layout_.parameters, value);
    const bool in_masters = place.type.dtype != precision_.parameters;
    if (in_masters && place.type.dtype != DType::f32) {
      fail("program", fmt::format("expected '{}' in f32 or Precision::parameters, as stores have weights, got {}",
                                  place.name, halfstep::name(place.type.dtype)));
    }
    if (in_masters) place.first_element = layout_.master_place(place.first_element);
    bind(value, place, place.name, place.type.dtype, {in_masters ? buffers::masters : buffers::weights, 0});
  }

  void bind_gradient(std::size_t i) {
    const state::ParameterEntry& place = entry_of(layout_.parameters, graph_.parameters[i]);
    bind(graph_.parameter_gradients[i], place, place.name + ".gradient", precision_.parameters,
         {buffers::gradients, 0});
    if (!has_scales()) return;
    const plan::TensorId gradient = builder_.values().tensor_of(graph_.ir, graph_.parameter_gradients[i]);
    builder_.stores().scale(gradient, static_cast<std::uint32_t>(&place - layout_.parameters.entries().data() + 1));
  }

  /// After the header, the outputs of each micro-batch.
  void place_outputs() {
    report_bytes_ = report_place_bytes;
    if (graph_.written) return;
    for (const graph::ValueId output : graph_.outputs) reported_.push_back({graph_.ir.values[output].type, {}});
    if (graph_.counted) {
      for (std::size_t i = 0; i + 1 < reported_.size(); ++i) reported_[i].of_counted = graph_.counted->means_of[i];
    }
    for (std::uint32_t i = 0; i < share_.reported(); ++i) {
      for (ReportedValue& value : reported_) {
        value.places.push_back(report_bytes_);
        report_bytes_ += next_place(plan::byte_size(value.type));
      }
    }
  }

  const StepGraph& graph_;
  const state::StoreLayout& layout_;
  const Precision& precision_;
  const plan::Target& target_;
  state::Parts parts_;
  Share share_;
  std::uint32_t micro_batch_ = 0;  ///< the current one
  plan::ProgramBuilder builder_;
  plan::TensorId state_;
  SharedTensors shared_;
  StepInputs inputs_;
  std::vector<bool> lowered_;
  std::vector<ReportedValue> reported_;
  std::uint64_t report_bytes_ = 0;
  std::uint64_t kept_from_ = 0;
  std::vector<std::variant<ExchangedStatistics, ExchangeBucket>> exchanged_;
  Findings found_;
  Watcher watcher_;
  std::vector<Chunk> updated_states_;
};

}  // namespace

state::StoreLayout layout_of(const StepGraph& graph) {
  return {.parameters = {graph.ir, graph.parameters, graph.training},
          .states = {graph.ir, graph.states, std::vector<state::Training>(graph.states.size())},
          .optimizers = graph.optimizers};
}

StepProgram training_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                             const TrainerOptions& options, const Share& share, const Watch& watch) {
  const bool synchronised = options.ranks.sync_batch_norm && options.ranks.exchange_gradients();
  Builder builder(target, graph, layout, options.precision, share, watch, synchronised);
  for (std::uint32_t i = 0; i < share.count; ++i) {
    if (i > 0) builder.next_micro_batch();
    builder.feed(true);
    builder.forward();
    builder.begin_backward();
    if (options.ranks.exchange_gradients() && i + 1 == share.count) {
      builder.backward_exchanged(options);
    } else {
      builder.backward_whole(options);
    }
  }
  for (const Stage stage : update_stages) builder.run(stage, options);
  builder.keep_reports();
  return builder.finish();
}

StepProgram evaluation_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                               const Precision& precision, Weights read) {
  Builder builder(target, graph, layout, precision);
  if (read == Weights::averaged) builder.read_averages();
  builder.feed(false);
  builder.forward();
  return builder.finish();
}

}  // namespace halfstep::step
