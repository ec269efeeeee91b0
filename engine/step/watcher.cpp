#include "step/watcher.h"

#include <halfstep/pattern.h>

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
  if (keep) watched.tensor = recorded(value, micro_batch);
  if (watch_.stop.any()) {
    for (const graph::ValueId input : producer.inputs) {
      const bool written = builder_.is_written(builder_.values().tensor_of(ir_, input));
      if (written) watched.inputs.push_back(recorded(input, micro_batch));
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

Recorded Watcher::recorded(graph::ValueId value, std::uint32_t micro_batch) {
  const plan::TensorId tensor = builder_.values().tensor_of(ir_, value);
  Recorded recorded{builder_.info(tensor).name, builder_.info(tensor).type, builder_.keep(tensor)};
  if (!is_changed(builder_.info(recorded.memory).region.buffer, micro_batch)) return recorded;
  const plan::TensorId copy = builder_.tensor(recorded.name + " (recorded)", recorded.type);
  builder_.copy(copy, recorded.memory, "record");
  recorded.memory = builder_.keep(copy);
  return recorded;
}

bool Watcher::is_changed(plan::BufferId buffer, std::uint32_t micro_batch) const {
  namespace buffers = state::buffers;
  // A step that is stopped updates nothing, but its later micro-batches take the places of those before them.
  if (watch_.stop.any()) {
    return micro_batch + 1 < micro_batches_ && (buffer == buffers::next_states || buffer == buffers::gradients);
  }
  return buffer == buffers::state || buffer == buffers::weights || buffer == buffers::masters ||
         buffer == buffers::states;
}

}  // namespace halfstep::step
