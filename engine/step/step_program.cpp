#include "step/step_program.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>

#include "state/buffers.h"
#include "step/report.h"
#include "step/stages.h"
#include "step/statistics.h"

namespace halfstep::step {
namespace {

namespace buffers = state::buffers;

/// No device asks for more as the alignment of a binding.
constexpr std::uint64_t alignment = 256;

std::uint64_t align(std::uint64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

class Builder {
 public:
  Builder(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
          const Precision& precision, std::uint32_t micro_batches = 1, const Watch& watch = {})
      : graph_(graph),
        layout_(layout),
        precision_(precision),
        target_(target),
        watch_(watch),
        micro_batch_{.index = 0, .count = micro_batches},
        builder_(target, {.partials = precision.partials}) {
    for (std::size_t i = 1; i < buffers::table.size(); ++i) builder_.buffer(std::string(buffers::table[i].name));
    state_ = builder_.place_bytes("state", sizeof(state::StepState), {buffers::state, 0});
    builder_.key_noise(state_);
    if (has_scales())
      builder_.key_scales(
          builder_.place_bytes("scales", state::gradient_scales::table_bytes, {buffers::gradient_scales, 0}));
    for (const graph::ValueId parameter : graph.parameters) bind_parameter(parameter);
    if (graph.samples) place_samples(*graph.samples);
    place_outputs();
    begin_micro_batch();
  }

  /// Has operators read the averages of the trained weights.
  void read_averages() {
    for (const graph::ValueId parameter : graph_.parameters) {
      const state::ParameterSlot& place = slot_of(layout_.parameters, parameter);
      if (place.training.frozen) continue;
      const bool rounded = is_narrow(place.type.dtype);
      bind(parameter, place, place.name, place.type.dtype,
           {rounded ? buffers::averaged_weights : buffers::averages, 0});
    }
    const DType read = precision_.parameters;
    if (!is_narrow(read)) return;
    builder_.store_narrow(Rounding::nearest, precision_.overflow);
    for (const Stretch& stretch : cut(target_, layout_.parameters.trained_elements() / 4, 16)) {
      const Shape shape{static_cast<std::int64_t>(4 * stretch.count)};
      feed_values(
          builder_, builder_.place("averages", {DType::f32, shape}, {buffers::averages, 16 * stretch.first}),
          builder_.place("averaged weights", {read, shape},
                         {buffers::averaged_weights, 4 * static_cast<std::uint64_t>(bytes(read)) * stretch.first}));
    }
    builder_.store_narrow(precision_.rounding.activations, precision_.overflow);
  }

  /// Goes on to the step's next micro-batch.
  void next_micro_batch() {
    ++micro_batch_.index;
    builder_.repeat(graph_.ir);
    lowered_.clear();
    begin_micro_batch();
  }

  void feed(const Augmentation& augmentation) {
    if (graph_.samples) {
      const auto batch = static_cast<std::uint32_t>(graph_.ir.values[graph_.samples->samples].type.shape.front());
      samples_.first = micro_batch_.index * batch;
      samples_.samples = input(graph_.samples->samples);
      samples_.labels = input(graph_.samples->labels);
      samples_.augmentation = augmentation;
      feed_samples(builder_, samples_);
    } else {
      for (std::size_t i = 0; i < graph_.inputs.size(); ++i) feed_with_values(i);
    }
  }

  void forward() {
    std::vector<graph::ValueId> wanted = graph_.outputs;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const graph::Value& value = graph_.ir.values[wanted[i]];
      const std::uint64_t place = reported_[i].places[micro_batch_.index];
      builder_.bind(wanted[i], builder_.place(value.name, value.type, {buffers::report, place}));
    }
    for (const graph::ValueId value : graph_.stored) {
      bind_parameter(value);
      wanted.push_back(value);
    }
    for (const graph::Update& update : graph_.ir.updates) {
      const state::ParameterSlot& slot = slot_of(layout_.states, update.state);
      bind(update.next, slot, slot.name + ".next", DType::f32, next_states(micro_batch_.index));
      wanted.push_back(update.next);
    }
    for (const graph::ValueId input : graph_.ir.of(graph::Origin::input)) watch_value(input, {"feed"});
    run(wanted, precision_.rounding.activations);
  }

  void backward() {
    builder_.bind(graph_.loss_scale, builder_.place("loss_scale", {DType::f32, {}}, {buffers::state, 0}));
    for (std::size_t i = 0; i < graph_.parameter_gradients.size(); ++i) bind_gradient(i);
    run(graph_.parameter_gradients, precision_.rounding.gradients);
  }

  void accumulate(const Optimizer& optimizer) {
    if (micro_batch_.count == 1) return;
    const state::WeightForm form = state::weight_form(precision_, optimizer);
    builder_.store_narrow(precision_.rounding.gradients, precision_.overflow);
    accumulate_gradients(builder_, layout_.parameters, form, buffers_of(form), micro_batch_);
  }

  void update(const StepOptions& options) {
    const Optimizer& optimizer = options.optimizer;
    const state::WeightForm form = state::weight_form(precision_, optimizer);
    const ParameterBuffers buffers = buffers_of(form);
    const state::ParameterLayout& parameters = layout_.parameters;
    const auto check = form.scaled ? choose_scales : check_gradients;
    check(builder_, state_, parameters, form, buffers);
    if (options.clip_norm > 0) clip_gradients(builder_, state_, parameters, form, buffers, options.clip_norm);
    update_weights(builder_, state_, parameters, precision_, buffers, optimizer);
    if (options.average_decay > 0) {
      average_weights(builder_, state_, parameters, form, buffers, options.average_decay);
    }
    update_states(builder_, state_, layout_.states, buffers::states, next_states(micro_batch_.index));
    const std::uint64_t count = optimizer->rate().rates.size();
    const plan::TensorId table = builder_.place_bytes("schedule", count * 4, {buffers::schedule, 0});
    const plan::TensorId header = builder_.place_bytes("report", sizeof(ReportHeader), {buffers::report, 0});
    rescale(builder_, state_, table, static_cast<std::uint32_t>(count), header, precision_, optimizer);
  }

  StepProgram finish() {
    return {plan::make_plan(builder_.finish(), {.alignment = std::max<std::uint64_t>(target_.offset_alignment, 64)}),
            std::move(slot_), std::move(reported_), report_bytes_, std::move(watched_)};
  }

 private:
  static ParameterBuffers buffers_of(const state::WeightForm& form) {
    return {.weights = buffers::weights,
            .masters = form.copy ? buffers::masters : buffers::weights,
            .gradients = buffers::gradients,
            .moments = buffers::moments,
            .gradient_sums = buffers::gradient_sums,
            .averages = buffers::averages,
            .scales = buffers::gradient_scales};
  }

  bool has_scales() const { return precision_.gradient_scales == GradientScales::per_tensor; }

  void begin_micro_batch() {
    builder_.store_narrow(precision_.rounding.activations, precision_.overflow);
    for (const graph::ValueId value : graph_.states) bind_state(value);
  }

  /// A micro-batch finds the states as the one before it made them, the first one as the last update left them.
  void bind_state(graph::ValueId value) {
    const state::ParameterSlot& place = slot_of(layout_.states, value);
    const std::uint32_t index = micro_batch_.index;
    bind(value, place, place.name, DType::f32, index == 0 ? plan::Region{buffers::states, 0} : next_states(index - 1));
  }

  /// Where a micro-batch puts the next values of states: not where it reads those of the micro-batch before it.
  plan::Region next_states(std::uint32_t micro_batch) const {
    return {buffers::next_states, micro_batch % 2 * layout_.states.padded_elements() * 4};
  }

  void run(std::span<const graph::ValueId> wanted, Rounding rounding) {
    run_graph(graph_.ir, wanted, lowered_, [&](const graph::Node& node) {
      // What is computed again is rounded as it was, and has been seen by the recorder.
      builder_.store_narrow(node.again ? precision_.rounding.activations : rounding, precision_.overflow);
      builder_.lower(graph_.ir, node);
      if (node.again) return;
      const Maker maker{plan::label_of(node), node.op->divides(), node.inputs};
      for (const graph::ValueId output : node.outputs) watch_value(output, maker);
    });
  }

  /// What has made a value.
  struct Maker {
    std::string label;
    bool divides = false;
    std::span<const graph::ValueId> inputs{};
  };

  /// Puts a value that has just been made under the recorder's eye, where it is wanted.
  void watch_value(graph::ValueId value, const Maker& maker) {
    if (!builder_.is_bound(value) || graph_.ir.values[value].type.dtype == DType::u32) return;
    const plan::TensorId tensor = builder_.tensor_of(graph_.ir, value);
    const std::string name = builder_.info(tensor).name;
    const bool keep = matches(watch_.keep, name);
    const bool look = matches(watch_.statistics, name);
    if (!keep && !look) return;
    Watched& watched = watched_.emplace_back();
    watched.micro_batch = micro_batch_.index;
    watched.op = maker.label;
    watched.divides = maker.divides;
    watched.stop = watch_.stop;
    watched.stop.overflow = watch_.stop.overflow || (watch_.stop.divide_by_zero && maker.divides);
    watched.tensor = {name, builder_.info(tensor).type, tensor};
    if (keep) {
      watched.tensor = kept(value);
      for (const graph::ValueId input : maker.inputs) watched.inputs.push_back(kept(input));
    }
    if (!look) return;
    watched.row = report_bytes_;
    const plan::TensorId row =
        builder_.place_bytes(name + " (statistics)", 4 * reported_words, {buffers::report, report_bytes_});
    look_at(builder_, tensor, row, state_, watched.stop);
    report_bytes_ += align(4 * reported_words);
  }

  Recorded kept(graph::ValueId value) {
    const plan::TensorId tensor = builder_.tensor_of(graph_.ir, value);
    return {builder_.info(tensor).name, builder_.info(tensor).type, builder_.keep(tensor)};
  }

  /// The place of the parameter or state of the same name, which the store may have been made for in another graph.
  const state::ParameterSlot& slot_of(const state::ParameterLayout& layout, graph::ValueId value) const {
    const graph::Value& wanted = graph_.ir.values[value];
    const state::ParameterSlot* slot = layout.find(wanted.name);
    if (slot != nullptr && slot->type == wanted.type) return *slot;
    fail("program",
         fmt::format("expected a store with '{}' {}, got {}", wanted.name, to_string(wanted.type),
                     slot == nullptr ? "none of that name" : to_string(slot->type)),
         "programs share weights by name");
  }

  /// A value in `store`, at the place of a parameter or state.
  void bind(graph::ValueId value, const state::ParameterSlot& place, std::string name, DType dtype,
            plan::Region store) {
    store.offset += place.first_element * static_cast<std::uint64_t>(bytes(dtype));
    builder_.bind(value, builder_.place(std::move(name), {dtype, place.type.shape}, store));
  }

  /// An f32 parameter of a policy whose others are f16 is in the masters.
  void bind_parameter(graph::ValueId value) {
    const state::ParameterSlot& place = slot_of(layout_.parameters, value);
    const bool in_masters = place.type.dtype != precision_.parameters;
    bind(value, place, place.name, place.type.dtype, {in_masters ? buffers::masters : buffers::weights, 0});
  }

  void bind_gradient(std::size_t i) {
    const state::ParameterSlot& place = slot_of(layout_.parameters, graph_.parameters[i]);
    bind(graph_.parameter_gradients[i], place, place.name + ".gradient", precision_.parameters,
         {buffers::gradients, 0});
    if (!has_scales()) return;
    const plan::TensorId gradient = builder_.tensor_of(graph_.ir, graph_.parameter_gradients[i]);
    builder_.store_scaled(gradient, static_cast<std::uint32_t>(&place - layout_.parameters.slots().data() + 1));
  }

  std::uint64_t take_slot(std::uint64_t bytes) {
    const std::uint64_t offset = slot_.size;
    slot_.size += align(bytes);
    return offset;
  }

  plan::TensorId input(graph::ValueId value) {
    const graph::Value& info = graph_.ir.values[value];
    const plan::TensorId tensor = builder_.tensor(info.name, info.type);
    builder_.bind(value, tensor);
    return tensor;
  }

  void feed_with_values(std::size_t i) {
    const graph::ValueId value = graph_.inputs[i];
    const TensorType& given = graph_.input_types[i];
    const std::string& name = graph_.ir.values[value].name;
    if (micro_batch_.index == 0) slot_.inputs.push_back({name, given, {}});
    const std::uint64_t offset = take_slot(plan::byte_size(given));
    slot_.inputs[i].places.push_back(offset);
    const plan::TensorId fed = builder_.place(fmt::format("{} (fed)", name), given, {buffers::slot, offset});
    feed_values(builder_, fed, input(value));
  }

  /// After the header, the outputs of each micro-batch.
  void place_outputs() {
    for (const graph::ValueId output : graph_.outputs) reported_.push_back({graph_.ir.values[output].type, {}});
    report_bytes_ = report_place_bytes;
    for (std::uint32_t i = 0; i < micro_batch_.count; ++i) {
      for (ReportedValue& value : reported_) {
        value.places.push_back(report_bytes_);
        report_bytes_ += align(plan::byte_size(value.type));
      }
    }
  }

  /// The samples of the whole step, and where they come from.
  void place_samples(const SampleInputs& samples) {
    const auto batch = static_cast<std::uint64_t>(graph_.ir.values[samples.samples].type.shape.front());
    const std::uint64_t step_batch = batch * micro_batch_.count;
    const auto sample_bytes = static_cast<std::uint64_t>(elements(samples.stored));
    const std::uint64_t count = samples.resident.value_or(static_cast<std::uint32_t>(step_batch));
    slot_.indices = take_slot(step_batch * 4);
    plan::Region bytes{buffers::data, 0};
    plan::Region labels{buffers::data, label_offset(sample_bytes, count)};
    if (!samples.resident) {
      slot_.bytes = take_slot(step_batch * sample_bytes);
      slot_.labels = take_slot(step_batch * 4);
      bytes = {buffers::slot, slot_.bytes};
      labels = {buffers::slot, slot_.labels};
    }
    samples_.state = state_;
    samples_.indices = builder_.place_bytes("indices", step_batch * 4, {buffers::slot, slot_.indices});
    samples_.bytes = builder_.place_bytes("samples", (count * sample_bytes + 3) / 4 * 4, bytes);
    samples_.label_words = builder_.place_bytes("labels", count * 4, labels);
    samples_.samples_in_set = static_cast<std::uint32_t>(count);
    samples_.stored = samples.stored;
    samples_.factor = samples.normalization.factor;
    samples_.offset = samples.normalization.offset;
  }

  const StepGraph& graph_;
  const state::StoreLayout& layout_;
  const Precision& precision_;
  const plan::Target& target_;
  Watch watch_;
  MicroBatch micro_batch_;
  plan::ProgramBuilder builder_;
  plan::TensorId state_ = 0;
  std::vector<bool> lowered_;
  SampleFeed samples_{};
  SlotLayout slot_;
  std::vector<ReportedValue> reported_;
  std::uint64_t report_bytes_ = 0;
  std::vector<Watched> watched_;
};

}  // namespace

std::uint64_t label_offset(std::uint64_t sample_bytes, std::uint64_t samples) {
  return align(sample_bytes * samples);
}

state::StoreLayout layout_of(const StepGraph& graph) {
  return {.parameters = {graph.ir, graph.parameters, graph.training},
          .states = {graph.ir, graph.states, std::vector<state::Training>(graph.states.size())}};
}

StepProgram training_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                             const StepOptions& options, const Watch& watch) {
  Builder builder(target, graph, layout, options.precision, options.accumulate, watch);
  for (std::uint32_t i = 0; i < options.accumulate; ++i) {
    if (i > 0) builder.next_micro_batch();
    builder.feed(graph.samples ? graph.samples->augmentation : Augmentation{});
    builder.forward();
    builder.backward();
    builder.accumulate(options.optimizer);
  }
  builder.update(options);
  return builder.finish();
}

StepProgram evaluation_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                               const Precision& precision, Weights read) {
  Builder builder(target, graph, layout, precision);
  if (read == Weights::averaged) builder.read_averages();
  builder.feed({});
  builder.forward();
  return builder.finish();
}

}  // namespace halfstep::step
