#include "state/store.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "plan/host_tensor.h"
#include "plan/layout.h"
#include "state/parts.h"
#include "vk/command/transfer.h"

namespace halfstep::state {
namespace {

using Kind = KeptTensor::Kind;

/// Calls `visit` with the first and the end of each group of tensors whose values the host holds at once: so many as 64
/// MiB and the device's largest buffer hold in f32, one at least. Most models are one group.
template <typename Visit>
void for_each_group(const vk::Context& context, std::span<const KeptTensor> tensors, const Visit& visit) {
  const std::uint64_t most_bytes = std::min(context.target().part_bytes, std::uint64_t{64} << 20);
  const auto most_elements = static_cast<std::int64_t>(most_bytes / sizeof(float));
  for (std::size_t first = 0, end = 0; first < tensors.size(); first = end) {
    std::int64_t sum = 0;
    do sum += elements(tensors[end++].entry->type.shape);
    while (end < tensors.size() && sum + elements(tensors[end].entry->type.shape) <= most_elements);
    visit(first, end);
  }
}

std::uint64_t quad_bytes(DType dtype) {
  return 4 * static_cast<std::uint64_t>(bytes(dtype));
}

/// Copies quads that lie side by side to or from a place where each is `stride` bytes after the one before.
void spread(std::span<const std::byte> from, std::byte* to, std::size_t quad, std::size_t stride) {
  for (std::size_t i = 0; i * quad < from.size(); ++i) std::memcpy(to + i * stride, from.data() + i * quad, quad);
}

void gather_quads(const std::byte* from, std::span<std::byte> to, std::size_t quad, std::size_t stride) {
  for (std::size_t i = 0; i * quad < to.size(); ++i) std::memcpy(to.data() + i * quad, from + i * stride, quad);
}

}  // namespace

ParameterStore::ParameterStore(vk::Context& context, StoreSpec spec)
    : context_(context.shared_from_this()), spec_(std::move(spec)) {
  const Parts parts(spec_.layout, spec_.weights, context.target().part_bytes);
  for (plan::BufferId id = 0; id < buffers_.size(); ++id) {
    const BufferRow& row = buffers::table[id];
    if (row.bytes == nullptr) continue;
    buffers_[id] = row.tensors == nullptr
                       ? vk::Buffer(context, row.bytes(spec_), row.memory, std::string(row.name))
                       : vk::Buffer::in_parts(context, row.bytes(spec_), parts.begins(id), std::string(row.name));
    // The padding of gradients is never written again, and must not count as an overflow.
    vk::fill(context, buffers_[id], 0, row.bytes(spec_), 0);
  }
  const std::vector<Optimizer>& optimizers = spec_.layout.optimizers;
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    vk::upload(context, buffers_[buffers::schedule], spec_.layout.first_rate(i) * sizeof(float),
               std::as_bytes(std::span(optimizers[i]->rate().rates)));
  }
  write_scales(std::vector<float>(spec_.layout.parameters.entries().size(), 1.0F));
}

std::uint64_t ParameterStore::bytes() const {
  std::uint64_t sum = 0;
  for (const vk::Buffer& buffer : buffers_) sum += buffer.bytes();
  return sum;
}

std::vector<KeptTensor> ParameterStore::tensors() const {
  std::vector<KeptTensor> result;
  const ParameterLayout& parameters = spec_.layout.parameters;
  for (const ParameterEntry& entry : parameters.entries()) {
    const bool master = spec_.weights.copy && entry.first_element < parameters.master_elements();
    result.push_back({Kind::weight, entry.name, &entry, 0, master ? DType::f32 : spec_.weights.compute});
    if (entry.training.frozen) continue;
    if (spec_.averages) result.push_back({Kind::average, entry.name + ".average", &entry, 0, DType::f32});
    for (std::uint32_t i = 0; i < entry.training.states; ++i) {
      const std::string state = spec_.layout.optimizers[entry.training.optimizer]->states()[i];
      result.push_back({Kind::moment, entry.name + "." + state, &entry, i, spec_.weights.moments});
    }
  }
  for (const ParameterEntry& entry : spec_.layout.states.entries()) {
    result.push_back({Kind::state, entry.name, &entry, 0, DType::f32});
  }
  return result;
}

std::vector<KeptTensor> ParameterStore::tensors(Weights weights) const {
  check(weights);
  std::vector<KeptTensor> result;
  for (KeptTensor tensor : tensors()) {
    if (tensor.kind != Kind::weight && tensor.kind != Kind::state) continue;
    if (weights == Weights::averaged && tensor.kind == Kind::weight) {
      // A weight that has no average is its own.
      if (!tensor.entry->training.frozen) tensor.kind = Kind::average;
      tensor.dtype = DType::f32;
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

void ParameterStore::check(Weights weights) const {
  if (weights == Weights::current || spec_.averages) return;
  fail("trainer", "expected a trainer that averages weights, got one that does not",
       "set TrainerOptions::ema_decay, to 0.999 for instance");
}

KeptTensor ParameterStore::find(std::string_view name, Weights weights) const {
  const std::vector<KeptTensor> all = tensors(weights);
  const auto found = std::ranges::find(all, name, &KeptTensor::name);
  if (found != all.end()) return *found;
  fail("trainer", fmt::format("expected the name of a parameter or state, got '{}'", name),
       fmt::format("the first one is '{}'", all.front().name));
}

/// Where a tensor is kept, the best place first.
std::vector<ParameterStore::Place> ParameterStore::places(const KeptTensor& tensor) const {
  const std::uint64_t first = tensor.entry->first_element;
  std::vector<Place> result;
  switch (tensor.kind) {
    case Kind::weight:
      if (spec_.weights.copy && first < spec_.layout.parameters.master_elements()) {
        result.push_back({buffers::masters, DType::f32, first});
      }
      result.push_back({buffers::weights, spec_.weights.compute, first});
      break;
    case Kind::average:
      result.push_back({buffers::averages, DType::f32, first});
      break;
    case Kind::moment:
      result.push_back({buffers::moments, spec_.weights.moments, tensor.entry->first_moment,
                        tensor.entry->training.states, tensor.moment});
      break;
    case Kind::state:
      result.push_back({buffers::states, DType::f32, first});
      // A state that is never updated has itself for its next value.
      for (std::uint64_t i = 0; i < spec_.next_states(); ++i) {
        result.push_back({buffers::next_states, DType::f32, first + i * spec_.layout.states.padded_elements()});
      }
      break;
  }
  return result;
}

/// The quads of a tensor, of its own lane.
std::vector<std::byte> ParameterStore::read(const Place& place, const Shape& shape) const {
  const std::uint64_t quad = quad_bytes(place.dtype);
  std::vector<std::byte> packed(plan::byte_size({place.dtype, shape}));
  if (place.lanes == 1) {
    download(place.buffer, place.first_element / 4 * quad, packed);
    return packed;
  }
  std::vector<std::byte> memory(packed.size() * place.lanes);
  download(place.buffer, place.first_element / 4 * quad, memory);
  gather_quads(memory.data() + place.lane * quad, packed, quad, place.lanes * quad);
  return packed;
}

std::vector<float> ParameterStore::read(const KeptTensor& tensor) const {
  const Place place = places(tensor).front();
  std::vector<std::byte> packed = read(place, tensor.entry->type.shape);
  if (is_shared_out(tensor)) gather(tensor.entry->first_element, packed, quad_bytes(place.dtype) / 4);
  return plan::floats_from_memory({place.dtype, tensor.entry->type.shape}, packed);
}

std::vector<float> ParameterStore::read_gradient(const ParameterEntry& entry) const {
  const TensorType type{spec_.weights.compute, entry.type.shape};
  return plan::floats_from_memory(type, read({buffers::gradients, type.dtype, entry.first_element}, type.shape));
}

void ParameterStore::write(std::span<const KeptTensor> tensors, std::span<const std::vector<float>> values) {
  for_each_group(*context_, tensors, [&](std::size_t first, std::size_t end) {
    // By buffer, and by which of a tensor's places it is: neighbours in both are neighbours in memory.
    std::map<std::pair<plan::BufferId, std::size_t>, std::vector<Change>> changes;
    for (std::size_t i = first; i < end; ++i) {
      const std::vector<Place> of = places(tensors[i]);
      for (std::size_t k = 0; k < of.size(); ++k) {
        changes[{of[k].buffer, k}].push_back({of[k], {of[k].dtype, tensors[i].entry->type.shape}, values[i]});
      }
    }
    for (const auto& [key, of] : changes) write(of);
  });
}

Overflow ParameterStore::overflow_of(const Place& place) const {
  return place.buffer == buffers::moments ? Overflow::saturate : spec_.precision.overflow;
}

/// Takes the bytes of a buffer from the first to the last that change, changes them and puts them back.
void ParameterStore::write(std::span<const Change> changes) const {
  const auto first_of = [](const Change& change) {
    return change.place.first_element / 4 * quad_bytes(change.place.dtype);
  };
  const Change& one = changes.front();
  if (changes.size() == 1 && one.place.lanes == 1) {
    upload(one.place.buffer, first_of(one), plan::to_memory(one.type, one.values, overflow_of(one.place)));
    return;
  }
  std::uint64_t first = first_of(one);
  std::uint64_t end = 0;
  for (const Change& change : changes) {
    first = std::min(first, first_of(change));
    end = std::max(end, first_of(change) + plan::byte_size(change.type) * change.place.lanes);
  }
  std::vector<std::byte> bytes(end - first);
  download(one.place.buffer, first, bytes);
  for (const Change& change : changes) {
    const std::uint64_t quad = quad_bytes(change.place.dtype);
    std::byte* to = bytes.data() + (first_of(change) - first) + change.place.lane * quad;
    spread(plan::to_memory(change.type, change.values, overflow_of(change.place)), to, quad, change.place.lanes * quad);
  }
  upload(one.place.buffer, first, bytes);
}

/// All of it, unless it is a buffer that other ranks have parts of.
std::vector<Held> ParameterStore::held(plan::BufferId buffer, std::uint64_t first, std::uint64_t count) const {
  const bool moments = buffer == buffers::moments;
  if (!spec_.layout.shard || (!moments && buffer != buffers::masters)) return {{first, count, first}};
  const Shard& shard = *spec_.layout.shard;
  const std::uint64_t each = moments ? quad_bytes(spec_.weights.moments) / 4 : 4;
  std::vector<Held> result;
  for (const Held& of : moments ? shard.moments() : shard.masters()) {
    const std::uint64_t from = std::max(first, of.first * each);
    const std::uint64_t end = std::min(first + count, (of.first + of.count) * each);
    if (from < end) result.push_back({from, end - from, of.place * each + (from - of.first * each)});
  }
  return result;
}

/// What this rank does not have is zero.
void ParameterStore::download(plan::BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) const {
  for (const Held& each : held(buffer, first, bytes.size())) {
    vk::download(*context_, buffers_[buffer], each.place, bytes.subspan(each.first - first, each.count));
  }
}

void ParameterStore::upload(plan::BufferId buffer, std::uint64_t first, std::span<const std::byte> bytes) const {
  for (const Held& each : held(buffer, first, bytes.size())) {
    vk::upload(*context_, buffers_[buffer], each.place, bytes.subspan(each.first - first, each.count));
  }
}

/// Completes the values of elements from `first` on, of `each` bytes, by what other ranks have of them.
void ParameterStore::gather(std::uint64_t first, std::span<std::byte> memory, std::uint64_t each) const {
  const std::uint64_t end = first + memory.size() / each;
  for (const Shared& shared : spec_.layout.shard->gathered()) {
    const std::uint64_t from = std::max(first, shared.first);
    const std::uint64_t to = std::min(end, shared.first + shared.count);
    if (from >= to) continue;
    std::vector<std::size_t> ends;
    for (const std::size_t of_rank : shared.ends) {
      ends.push_back((std::clamp(shared.first + of_rank, from, to) - from) * each);
    }
    spec_.exchange->begin_gather(memory.subspan((from - first) * each, (to - from) * each), ends);
  }
  spec_.exchange->wait();
}

bool ParameterStore::is_shared_out(const KeptTensor& tensor) const {
  if (!spec_.layout.shard || tensor.entry->training.frozen) return false;
  if (tensor.kind == Kind::moment) return true;
  return tensor.kind == Kind::weight && spec_.weights.copy && tensor.entry->type.dtype == spec_.weights.compute;
}

std::vector<float> ParameterStore::read_weight(const ParameterEntry& entry) const {
  const bool copied = entry.type.dtype == spec_.weights.compute;
  return plan::floats_from_memory(
      entry.type,
      read({copied ? buffers::weights : buffers::masters, entry.type.dtype, entry.first_element}, entry.type.shape));
}

std::vector<const ParameterEntry*> ParameterStore::copied_at_random() const {
  std::vector<const ParameterEntry*> result;
  if (!spec_.weights.copy || spec_.precision.rounding.weights == Rounding::nearest) return result;
  for (const ParameterEntry& entry : spec_.layout.parameters.entries()) {
    if (!entry.training.frozen && entry.type.dtype == spec_.weights.compute) result.push_back(&entry);
  }
  return result;
}

void ParameterStore::write_copy(const ParameterEntry& entry, std::span<const float> values) {
  const DType read = spec_.weights.compute;
  upload(buffers::weights, entry.first_element / 4 * quad_bytes(read),
         plan::to_memory({read, entry.type.shape}, values, spec_.precision.overflow));
}

void ParameterStore::average_weights(std::span<const KeptTensor> of) {
  if (!spec_.averages) return;
  std::vector<KeptTensor> weights;
  std::vector<KeptTensor> averages;
  for (const KeptTensor& tensor : of) {
    if (tensor.kind != Kind::weight || tensor.entry->training.frozen) continue;
    weights.push_back(tensor);
    averages.push_back(tensor);
    averages.back().kind = Kind::average;
  }
  for_each_group(*context_, averages, [&](std::size_t first, std::size_t end) {
    std::vector<std::vector<float>> values;
    for (std::size_t i = first; i < end; ++i) values.push_back(read(weights[i]));
    write(std::span(averages).subspan(first, end - first), values);
  });
}

void ParameterStore::initialize(std::uint64_t seed) {
  const std::vector<KeptTensor> kept = tensors(Weights::current);
  for_each_group(*context_, kept, [&](std::size_t first, std::size_t end) {
    std::vector<std::vector<float>> values;
    for (std::size_t i = first; i < end; ++i) values.push_back(initial_values(*kept[i].entry, seed));
    write(std::span(kept).subspan(first, end - first), values);
  });
  average_weights(kept);
}

RunState ParameterStore::read_state() const {
  RunState state;
  state.optimizers.resize(std::max<std::size_t>(1, spec_.layout.optimizers.size()) - 1);
  const vk::Buffer& buffer = buffers_[buffers::state];
  vk::download(*context_, buffer, 0, std::as_writable_bytes(std::span(&state.step, 1)));
  vk::download(*context_, buffer, sizeof(StepState), std::as_writable_bytes(std::span(state.optimizers)));
  return state;
}

void ParameterStore::write_state(const RunState& state) {
  const vk::Buffer& buffer = buffers_[buffers::state];
  vk::upload(*context_, buffer, 0, std::as_bytes(std::span(&state.step, 1)));
  vk::upload(*context_, buffer, sizeof(StepState), std::as_bytes(std::span(state.optimizers)));
}

std::vector<float> ParameterStore::read_scales() const {
  return gradient_scales::read(*context_, buffers_[buffers::gradient_scales], spec_.layout.parameters);
}

void ParameterStore::write_scales(std::span<const float> scales) {
  if (!spec_.weights.scaled) return;
  gradient_scales::write(*context_, buffers_[buffers::gradient_scales], spec_.layout.parameters, scales);
}

}  // namespace halfstep::state
