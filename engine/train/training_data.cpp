#include "train/training_data.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "state/buffers.h"
#include "step/report.h"
#include "train/labels.h"
#include "vk/command/transfer.h"

namespace halfstep::train {
namespace {

/// What the integers of a source's field may be.
struct Limit {
  std::int64_t bound = std::int64_t{1} << 32;  ///< above each of them; 2^32 where anything will do
  std::vector<Classes> classes{};              ///< of the losses and metrics that they are labels of

  bool allows(std::uint32_t value) const {
    const auto allowed = [&](const Classes& each) { return each.allow(value); };
    return (value < bound || (!classes.empty() && value == ignored_label)) && std::ranges::all_of(classes, allowed);
  }
  /// What they are below, but for ignored labels.
  std::int64_t below() const {
    std::int64_t least = bound;
    for (const Classes& each : classes) least = std::min(least, each.count);
    return least;
  }
};

void check_values(const Source& source, std::int64_t number, const Field& field, const Limit& limit,
                  std::span<const std::byte> data) {
  for_each_integer(field.type, data, [&](std::uint32_t value) {
    if (limit.allows(value)) return;
    fail("source", fmt::format("'{}': expected values below {} in field '{}', got {} in batch {}", source.name,
                               limit.below(), field.name, value, number));
  });
}

/// Calls the application; whatever it throws becomes an Error.
void fill_by(const Source& source, const SourceBatch& batch) {
  const auto refuse = [&](std::string_view what) {
    fail("source", fmt::format("'{}': expected batch {}, got an exception: {}", source.name, batch.number, what));
  };
  try {
    source.fill(batch);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse(error.what());
  } catch (...) {
    refuse("of an unknown type");
  }
}

/// Has a source fill all of its fields, and passes on those that are fed.
struct SourceFiller {
  const Source* source;
  std::int64_t batch;              ///< samples, where they have no indices
  std::vector<std::size_t> fed{};  ///< for each input, the source's field
  std::vector<Limit> limits{};     ///< of each input
  std::vector<std::vector<std::byte>> filled{};

  void operator()(const Wanted& wanted, data::HostBatch& to) {
    SourceBatch room{.number = wanted.number, .indices = wanted.indices, .fields = source->fields};
    filled.resize(source->fields.size());
    const std::int64_t samples = wanted.indices.empty() ? batch : std::ssize(wanted.indices);
    for (std::size_t i = 0; i < filled.size(); ++i) {
      const Field& field = source->fields[i];
      filled[i].resize(static_cast<std::size_t>(samples * elements(field.shape) * bytes(field.type)));
      room.room.push_back(filled[i]);
    }
    fill_by(*source, room);
    to.fields.resize(fed.size());
    for (std::size_t i = 0; i < fed.size(); ++i) {
      to.fields[i] = filled[fed[i]];
      check_values(*source, wanted.number, source->fields[fed[i]], limits[i], to.fields[i]);
    }
  }
};

}  // namespace

Supply set_supply(const Dataset& set, std::vector<std::vector<Field>> fields, std::vector<std::uint32_t> buckets) {
  return {.name = set.name,
          .count = set.count,
          .buckets = std::move(buckets),
          .gather = [fields = std::move(fields)](const Wanted& wanted, data::HostBatch& batch) {
            data::gather(fields[wanted.bucket], wanted.indices, batch);
          }};
}

Supply source_supply(const Source& source, const step::StepGraph& graph, std::int64_t batch) {
  SourceFiller filler{&source, batch};
  for (const step::FieldInput& input : graph.samples->fields) {
    const auto found = std::ranges::find(source.fields, input.field, &Field::name);
    filler.fed.push_back(static_cast<std::size_t>(found - source.fields.begin()));
    Limit& limit = filler.limits.emplace_back();
    if (found->bound != 0) limit.bound = found->bound;
    limit.classes = classes_of(graph.ir, graph.outputs, input.input);
  }
  return {.name = source.name, .count = source.count, .gather = std::move(filler)};
}

std::uint64_t place_resident(step::SampleInputs& inputs, std::span<const Field> fields) {
  inputs.resident = true;
  std::uint64_t end = inputs.table_bytes;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    std::uint64_t offset = end;
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = fields[j].data.data() == field.data.data() && fields[j].data.size() == field.data.size();
      if (same) offset = inputs.fields[j].resident.offset;
    }
    inputs.fields[i].resident = {offset, field.data.size(), field.first, field.step()};
    end = std::max(end, offset + step::next_place(field.data.size()));
  }
  return end;
}

void upload(vk::Context& context, const state::ParameterStore& store, const step::SampleInputs& inputs,
            const Dataset* set) {
  if (inputs.table_bytes == 0 && !inputs.resident) return;
  const vk::Buffer& buffer = store.buffer(state::buffers::data);
  const std::vector<Field> fields = inputs.resident ? set->all_fields() : std::vector<Field>{};
  std::uint64_t end = 0;  // of what is there
  for (const step::FieldInput& input : inputs.fields) {
    if (input.is_normalised()) {
      const auto table = step::normalisation_table(input);
      vk::upload(context, buffer, input.normalisation, std::as_bytes(std::span(table)));
    }
    if (!inputs.resident || input.resident.offset < end) continue;
    const auto field = std::ranges::find(fields, input.field, &Field::name);
    vk::upload(context, buffer, input.resident.offset, field->data);
    end = input.resident.offset + input.resident.bytes;
  }
}

}  // namespace halfstep::train
