#include "step/recording.h"

#include <cstring>

#include "vk/command/transfer.h"

namespace halfstep::step {
namespace {

/// No device asks for more as the alignment of a uniform buffer.
constexpr std::uint64_t key_alignment = 256;

vk::Pipelines::Start start_of(const plan::Slice& slice) {
  return slice.width == 0 ? vk::Pipelines::Start::first : vk::Pipelines::Start::any;
}

}  // namespace

Recording::Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
                     std::span<const vk::Buffer* const> buffers, Options options)
    : context_(context),
      pipelines_(pipelines),
      plan_(plan),
      buffers_(buffers.begin(), buffers.end()),
      options_(options),
      pieces_(plan.program, context.target()),
      sets_(context) {
  make_keys();
  for (const plan::Dispatch& dispatch : plan.program.dispatches) bind(dispatch);
  record();
}

/// The keys of all dispatches, each at a place that a binding may start at, laid out as in common/storing.glsl.
void Recording::make_keys() {
  for (const plan::Dispatch& dispatch : plan_.program.dispatches) {
    key_places_.try_emplace(key_of(dispatch), key_places_.size() * key_alignment);
  }
  std::vector<std::byte> keys(key_places_.size() * key_alignment);
  for (const auto& [key, place] : key_places_) {
    std::memcpy(&keys[place], key.data(), sizeof key);
  }
  keys_ = vk::Buffer(context_, keys.size(), vk::Memory::device, "keys of noise and scales");
  vk::upload(context_, keys_, 0, keys);
}

VkDescriptorSet Recording::storing_set(const vk::Pipeline& pipeline, const plan::Dispatch& dispatch) {
  const auto [found, fresh] = storing_sets_.try_emplace(key_of(dispatch));
  if (!fresh) return found->second;
  const vk::BufferRange key{keys_.handle(), key_places_.at(found->first), key_alignment, keys_.name()};
  // What the program does not have is bound all the same, and not read.
  const auto range = [&](std::optional<plan::TensorId> tensor) {
    if (!tensor) return key;
    const plan::ProgramTensor& info = plan_.program.tensors[*tensor];
    const vk::Buffer::Place place = buffers_[info.region.buffer]->at(info.region.offset, info.bytes);
    return vk::BufferRange{place.buffer, place.offset, info.bytes, info.name};
  };
  found->second = sets_.make_storing(pipeline, {range(plan_.program.noise_key), key, range(plan_.program.scales)});
  return found->second;
}

void Recording::bind(const plan::Dispatch& dispatch) {
  const vk::Pipeline& pipeline = pipelines_.get(dispatch);
  std::vector<vk::BufferRange> ranges;
  for (const plan::BoundPart& part : plan::bound_parts(plan_.program, dispatch)) {
    const plan::Operand& operand = dispatch.operands[part.operand];
    const plan::ProgramTensor& tensor = plan_.program.tensors[operand.tensor];
    const bool is_texels = ranges.size() < 32 && (pipeline.texels >> ranges.size() & 1) != 0;
    const VkFormat texels = is_texels ? vk::quad_format(tensor.type.dtype) : VK_FORMAT_UNDEFINED;
    const vk::Buffer::Place place = buffers_[tensor.region.buffer]->at(tensor.region.offset + part.offset, part.bytes);
    ranges.push_back({place.buffer, place.offset, part.bytes, tensor.name, texels});
  }
  Bound bound;
  for (const plan::Operand& operand : dispatch.operands) {
    if (!operand.address) continue;
    const plan::ProgramTensor& tensor = plan_.program.tensors[operand.tensor];
    const std::uint64_t address = buffers_[tensor.region.buffer]->address(tensor.region.offset, tensor.bytes);
    const auto bytes = std::as_bytes(std::span(&address, 1));
    bound.push.insert(bound.push.end(), bytes.begin(), bytes.end());
  }
  bound.push.insert(bound.push.end(), dispatch.push.begin(), dispatch.push.end());
  bound.sets = {sets_.make(pipeline, ranges)};
  if (pipeline.storing_layout != VK_NULL_HANDLE) bound.sets.push_back(storing_set(pipeline, dispatch));
  bound_.push_back(std::move(bound));
}

void Recording::record() {
  is_recorded_ = false;
  recorders_.resize(pieces_.list().size());
  for (std::size_t i = 0; i < recorders_.size(); ++i) {
    if (!recorders_[i]) recorders_[i] = std::make_unique<vk::Recorder>(context_);
    record(*recorders_[i], pieces_.list()[i]);
  }
  is_recorded_ = true;
}

void Recording::record(vk::Recorder& recorder, const plan::Piece& piece) {
  recorder.begin(options_.timestamps ? static_cast<std::uint32_t>(piece.size()) + 1 : 2);
  // Between two pieces of an open step the application may submit work on the memory that it shares.
  if (options_.shares) recorder.outer_barrier();
  if (&recorder == recorders_.front().get()) recorder.barrier();
  recorder.timestamp();
  for (const plan::Slice& slice : piece) {
    record(recorder, slice);
    if (options_.timestamps) recorder.timestamp();
  }
  if (!options_.timestamps) recorder.timestamp();
  recorder.host_barrier();
  if (options_.shares) recorder.outer_barrier();
  recorder.end();
}

void Recording::record_into(VkCommandBuffer commands) {
  vk::Recorder recorder(context_, commands);
  recorder.begin_label("Halfstep");
  recorder.outer_barrier();
  for (std::uint32_t i = 0; i < plan_.program.dispatches.size(); ++i) record(recorder, plan::Slice{.dispatch = i});
  recorder.host_barrier();
  recorder.outer_barrier();
  recorder.end_label();
}

void Recording::record(vk::Recorder& recorder, const plan::Slice& slice) {
  const plan::Dispatch& dispatch = plan_.program.dispatches[slice.dispatch];
  // Two rows of a dispatch may add to the same word.
  if (slice.row > 0 || plan_.barrier_before[slice.dispatch]) recorder.dispatch_barrier();
  const Bound& bound = bound_[slice.dispatch];
  recorder.begin_label(dispatch.label);
  recorder.dispatch(pipelines_.get(dispatch, start_of(slice)), bound.sets, bound.push, plan::groups_of(slice, dispatch),
                    slice.row * slice.width);
  recorder.end_label();
}

std::uint64_t Recording::submit(vk::Timeline& timeline) {
  std::size_t next = 0;
  return submit(timeline, next, pieces());
}

std::uint64_t Recording::submit(vk::Timeline& timeline, std::size_t& next, std::size_t end) {
  if (!is_recorded_) record();
  std::vector<const vk::Recorder*> wanted;
  for (std::size_t i = next; i < end; ++i) wanted.push_back(recorders_[i].get());
  return timeline.submit(wanted, next);
}

void Recording::limit(double seconds) {
  if (pieces_.limit(seconds)) is_recorded_ = false;
}

std::size_t Recording::end_within(std::size_t first, double seconds) const {
  double sum = pieces_.seconds(first);
  std::size_t end = first + 1;
  while (end < pieces() && (sum += pieces_.seconds(end)) <= seconds) ++end;
  return end;
}

void Recording::finished() {
  std::vector<std::uint64_t> ticks;
  std::vector<double> times;
  for (const auto& recorder : recorders_) {
    const std::size_t before = ticks.size();
    recorder->read_timestamps(ticks);
    if (ticks.size() > before) times.push_back(vk::microseconds(context_, ticks[before], ticks.back()));
  }
  if (times.empty()) return;  // the queue has no timestamps
  first_tick_ = ticks.front();
  microseconds_ = vk::microseconds(context_, ticks.front(), ticks.back());
  if (options_.timestamps) read_dispatch_times(ticks);
  if (pieces_.measured(times)) is_recorded_ = false;
}

void Recording::run(vk::Timeline& timeline) {
  timeline.wait(submit(timeline));
  finished();
}

void Recording::read_dispatch_times(std::span<const std::uint64_t> ticks) {
  const auto since_start = [&](std::size_t tick) { return vk::microseconds(context_, ticks[0], ticks[tick]); };
  dispatch_times_.assign(plan_.program.dispatches.size(), {});
  std::size_t tick = 0;
  for (const plan::Piece& piece : pieces_.list()) {
    for (const plan::Slice& slice : piece) {
      DispatchTime& time = dispatch_times_[slice.dispatch];
      if (slice.row == 0) time.begin = since_start(tick);
      time.end = since_start(++tick);
    }
    ++tick;  // each piece begins with one
  }
}

}  // namespace halfstep::step
