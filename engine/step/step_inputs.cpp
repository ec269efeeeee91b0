#include "step/step_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "plan/layout.h"
#include "state/buffers.h"
#include "step/report.h"
#include "step/stages.h"
#include "step/step_program.h"

namespace halfstep::step {
namespace {

namespace buffers = state::buffers;

/// The value for a channel of a list that has one for all, or one for each.
float of_channel(const std::vector<float>& values, std::size_t channel) {
  return values[std::min(channel, values.size() - 1)];
}

/// Kernels read words.
std::uint64_t whole_words(std::uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

}  // namespace

std::vector<std::array<float, 2>> normalisation_table(const FieldInput& input) {
  std::vector<std::array<float, 2>> table(std::max(input.mean.size(), input.stddev.size()));
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = {of_channel(input.mean, i), 1 / of_channel(input.stddev, i)};
  }
  return table;
}

StepInputs::StepInputs(plan::ProgramBuilder& builder, const StepGraph& graph, plan::TensorId state, const Share& share)
    : builder_(builder), graph_(graph), state_(state), before_(share.before) {
  if (!graph.samples) return;
  const std::uint64_t step_batch = static_cast<std::uint64_t>(graph.samples->batch) * share.count;
  slot_.indices = take_slot(step_batch * 4);
  indices_ = builder.place_bytes("indices", slot_.indices.bytes, {buffers::slot, slot_.indices.offset});
  for (const FieldInput& field : graph.samples->fields) sources_.push_back(source_of(field, step_batch));
}

SlotRange StepInputs::take_slot(std::uint64_t bytes) {
  const SlotRange range{slot_.size, bytes};
  slot_.size += next_place(bytes);
  return range;
}

StepInputs::Source StepInputs::source_of(const FieldInput& input, std::uint64_t step_batch) {
  Source source;
  if (input.is_normalised()) {
    source.table = builder_.place_bytes(fmt::format("normalisation of {}", input.field),
                                        normalisation_table(input).size() * sizeof(std::array<float, 2>),
                                        {buffers::data, input.normalisation});
  }
  if (graph_.samples->resident) {
    const ResidentField& resident = input.resident;
    source.tensor = builder_.place_bytes(input.field, whole_words(resident.bytes), {buffers::data, resident.offset});
    source.first = resident.first;
    source.stride = resident.stride;
    return source;
  }
  source.stride = elements(input.read());
  const SlotRange range =
      take_slot(step_batch * static_cast<std::uint64_t>(source.stride * halfstep::bytes(input.type)));
  slot_.fields.push_back(range);
  source.tensor = builder_.place_bytes(input.field, whole_words(range.bytes), {buffers::slot, range.offset});
  return source;
}

plan::TensorId StepInputs::input(graph::ValueId value) {
  const graph::Value& info = graph_.ir.values[value];
  const plan::TensorId tensor = builder_.tensor(info.name, info.type);
  builder_.values().bind(value, tensor);
  return tensor;
}

void StepInputs::feed(std::uint32_t micro_batch, bool augmented) {
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) feed_given(i, micro_batch);
  if (!graph_.samples) return;
  const std::uint32_t first = micro_batch * static_cast<std::uint32_t>(graph_.samples->batch);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    feed_field(graph_.samples->fields[i], sources_[i], first, augmented);
  }
}

void StepInputs::feed_field(const FieldInput& field, const Source& source, std::uint32_t first, bool augmented) {
  const plan::TensorId tensor = input(field.input);
  if (field.type == ElementType::u8 && is_floating(builder_.info(tensor).type.dtype)) {
    SampleFeed feed{.state = state_,
                    .indices = indices_,
                    .bytes = source.tensor,
                    .samples = tensor,
                    .first = first,
                    .place = first + before_ * static_cast<std::uint32_t>(graph_.samples->batch),
                    .stored = field.stored};
    for (std::size_t i = 0; i < 4; ++i) {
      feed.factor[i] = 1 / (255 * of_channel(field.stddev, i));
      feed.offset[i] = -of_channel(field.mean, i) / of_channel(field.stddev, i);
    }
    if (augmented) feed.augmentation = field.augmentation;
    feed_samples(builder_, feed);
    return;
  }
  ElementFeed feed{.indices = indices_,
                   .elements = source.tensor,
                   .input = tensor,
                   .type = field.type,
                   .sample_size = static_cast<std::uint32_t>(elements(field.read())),
                   .first = first,
                   .first_element = static_cast<std::uint32_t>(source.first),
                   .stride = static_cast<std::uint32_t>(source.stride),
                   .normalisation = source.table};
  if (source.table) feed.channels = static_cast<std::uint32_t>(normalisation_table(field).size());
  feed_elements(builder_, feed);
}

void StepInputs::feed_given(std::size_t i, std::uint32_t micro_batch) {
  const graph::ValueId value = graph_.inputs[i];
  const TensorType& given = graph_.input_types[i];
  const std::string& name = graph_.ir.values[value].name;
  if (micro_batch == 0) slot_.inputs.push_back({name, given, {}});
  const std::uint64_t offset = take_slot(plan::byte_size(given)).offset;
  slot_.inputs[i].places.push_back(offset);
  const plan::TensorId fed = builder_.place(fmt::format("{} (fed)", name), given, {buffers::slot, offset});
  feed_values(builder_, fed, input(value));
}

}  // namespace halfstep::step
