#include "step/watcher.h"

#include <halfstep/pattern.h>

#include <algorithm>

#include "state/buffers.h"
#include "step/report.h"
#include "step/statistics.h"

namespace halfstep::step {

void Watcher::look(graph::ValueId value, const Producer& producer, std::uint32_t micro_batch) {
  if (!builder_.values().is_bound(value) || ir_.values[value].type.dtype == DType::u32) return;
  const plan::TensorId tensor = builder_.values().tensor_of(ir_, value);
  const std::string name = builder_.info(tensor).name;
  const bool keep = matches(watch_.keep, name);
  const bool has_statistics = matches(watch_.statistics, name);
  if ((!keep && !has_statistics) || !builder_.is_written(tensor)) return;
  Watched& watched = watched_.emplace_back();
  watched.micro_batch = micro_batch;
  watched.op = producer.label;
  watched.divides = producer.divides;
  watched.stop = watch_.stop;
  watched.stop.overflow = watch_.stop.overflow || (watch_.stop.divide_by_zero && producer.divides);
  watched.tensor = {name, builder_.info(tensor).type, tensor};
  if (keep) {
    watched.tensor = watch_.stop.any() ? kept(value) : traced(value);
    for (const graph::ValueId input : producer.inputs) {
      if (builder_.is_written(builder_.values().tensor_of(ir_, input))) watched.inputs.push_back(kept(input));
    }
  }
  if (!has_statistics) return;
  constexpr std::uint64_t row_bytes = 4 * reported_words;
  watched.row = report_bytes_;
  const plan::TensorId row =
      builder_.place_bytes(name + " (statistics)", row_bytes, {state::buffers::report, report_bytes_});
  look_at(builder_, tensor, row, builder_.stores().noise_key().value(), watched.stop);
  report_bytes_ += next_place(row_bytes);
}

Recorded Watcher::traced(graph::ValueId value) {
  Recorded traced = kept(value);
  const plan::BufferId buffer = builder_.info(traced.memory).region.buffer;
  const auto changed = {state::buffers::state, state::buffers::weights, state::buffers::masters,
                        state::buffers::states};
  if (std::ranges::find(changed, buffer) == changed.end()) return traced;
  const plan::TensorId copy = builder_.tensor(traced.name + " (traced)", traced.type);
  builder_.copy(copy, traced.memory, "trace");
  traced.memory = builder_.keep(copy);
  return traced;
}

Recorded Watcher::kept(graph::ValueId value) {
  const plan::TensorId tensor = builder_.values().tensor_of(ir_, value);
  return {builder_.info(tensor).name, builder_.info(tensor).type, builder_.keep(tensor)};
}

}  // namespace halfstep::step
