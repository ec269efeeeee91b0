// The flight recorder: a second recording of the step, with dispatches in it that look at tensors.
#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>
#include <utility>

#include "plan/host_tensor.h"
#include "state/gradient_scales.h"
#include "step/statistics.h"
#include "train/trainer_impl.h"
#include "vk/command/transfer.h"

namespace halfstep {
namespace {

/// Places along each axis of the `element`-th element.
Shape place_of(std::uint64_t element, const Shape& shape) {
  Shape place(shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    place[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return place;
}

/// What a tensor's values are at an element of one of the same shape, or altogether.
std::string describe_values(const std::vector<float>& values, const Shape& shape, std::uint64_t element,
                            const Shape& other) {
  if (shape == other) return fmt::format("{}", values[element]);
  const auto [low, high] = std::ranges::minmax_element(values);
  return fmt::format("from {} to {}", *low, *high);
}

/// The element of a tensor of shape `from` that goes with a place in a result that it broadcasts to.
std::size_t broadcast_element(const Shape& place, const Shape& from) {
  const std::size_t outer = place.size() - from.size();
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    element = element * from[axis] + (from[axis] == 1 ? 0 : place[outer + axis]);
  }
  return static_cast<std::size_t>(element);
}

std::string flags(bool is_nan, bool by_zero) {
  NumericsFlags raised;
  raised.overflow = !is_nan && !by_zero;
  raised.divide_by_zero = !is_nan && by_zero;
  raised.invalid = is_nan;
  return fmt::format("OFLO {:d}, DIV0 {:d}, INV {:d}", raised.overflow, raised.divide_by_zero, raised.invalid);
}

std::span<const std::byte> row_of(const step::Slot& slot, const step::Watched& watched) {
  return {slot.report.mapped() + watched.row.value_or(0), 4 * step::reported_words};
}

}  // namespace

void Trainer::Impl::make_recorded() {
  recorded_slots_.reset();
  recorded_ = step::training_program(target_, graph_, layout_, step_options(), watch_);
  recorded_arena_ = vk::Buffer(context_, recorded_.plan.arena.bytes, vk::Memory::device, "arena of recorded steps");
  auto bound = buffers();
  bound[state::buffers::arena] = &recorded_arena_;
  recorded_slots_ = std::make_unique<step::Slots>(context_, pipelines_, timeline_, recorded_, bound,
                                                  [this](const step::Slot& slot) { read_records(slot); });
}

void Trainer::Impl::watch(std::string_view pattern, std::uint64_t every) {
  if (every == 0) fail("watch", "expected one step out of 1 or more, got 0");
  if (precision_.stop_on.any() || !watch_.keep.empty()) {
    fail("watch", "expected a trainer that looks at no tensors yet, got one with stop_on or trace",
         "stop_on looks at every tensor of every step already");
  }
  finish();
  watch_.statistics = pattern;
  watch_every_ = every;
  recorded_slots_.reset();
  if (pattern.empty()) return;
  make_recorded();
  if (!recorded_.watched.empty()) return;
  recorded_slots_.reset();
  fail("watch", fmt::format("expected a pattern of tensors' names, got '{}', which none has", pattern),
       "Trainer::plan() lists them; \"*gradient\" are the gradients of parameters");
}

step::Slots& Trainer::Impl::slots_of_next_step() {
  return recorded_slots_ && submitted_ % watch_every_ == 0 ? *recorded_slots_ : *training_slots_;
}

void Trainer::Impl::read_records(const step::Slot& slot) {
  const step::ReportHeader header = slot.header();
  if ((header.overflow & state::stopped_flag) != 0) return stop_where_broken(slot);
  read_report(slot);
  if (precision_.stop_on.any()) return;
  for (const step::Watched& watched : recorded_.watched) {
    if (!watched.row) continue;
    TensorStatistics& record = records_.emplace_back(
        step::read_statistics(row_of(slot, watched), static_cast<std::uint64_t>(elements(watched.tensor.type.shape))));
    record.name = watched.tensor.name;
    record.op = watched.op;
    record.micro_batch = watched.micro_batch;
    record.step = header.attempted[0] | static_cast<std::uint64_t>(header.attempted[1]) << 32;
    record.loss_scale = header.loss_scale;
  }
}

std::vector<TensorStatistics> Trainer::Impl::take_records() {
  training_slots_->poll();
  if (recorded_slots_) recorded_slots_->poll();
  return std::exchange(records_, {});
}

/// The values of a recorded step that has finished, in `slot`.
std::vector<float> Trainer::Impl::values_of(const step::Recorded& tensor, const step::Slot& slot) {
  const plan::ProgramTensor& memory = recorded_.plan.program.tensors[tensor.memory];
  const auto [buffer, offset] = memory.region;
  if (buffer == state::buffers::slot || buffer == state::buffers::report) {
    const vk::Buffer& own = buffer == state::buffers::slot ? slot.input : slot.report;
    return plan::floats_from_memory(tensor.type, {own.mapped() + offset, memory.bytes});
  }
  std::vector<std::byte> bytes(memory.bytes);
  vk::download(context_, buffer == state::buffers::arena ? recorded_arena_ : buffers_[buffer], offset, bytes);
  std::vector<float> values = plan::floats_from_memory(tensor.type, bytes);
  if (buffer == state::buffers::gradients && form_.scaled) {
    const float unscale = gradient_unscale(offset / static_cast<std::uint64_t>(halfstep::bytes(tensor.type.dtype)));
    for (float& value : values) value *= unscale;
  }
  return values;
}

/// What undoes the scale that the gradient at this element of the store was stored times in the last step.
float Trainer::Impl::gradient_unscale(std::uint64_t first_element) {
  using namespace state::gradient_scales;
  Block block;
  vk::download(context_, buffers_[state::buffers::gradient_scales],
               blocks_offset + first_element / block_elements * sizeof block,
               std::as_writable_bytes(std::span(&block, 1)));
  return block.unscale;
}

std::vector<float> Trainer::Impl::trace(std::string_view name) {
  finish();
  for (const step::Watched& watched : recorded_.watched | std::views::reverse) {
    const bool kept = matches(watch_.keep, name) && submitted_ > 0;
    if (kept && watched.tensor.name == name) return values_of(watched.tensor, recorded_slots_->last());
  }
  fail("trace", fmt::format("expected a tensor that TrainerOptions::trace keeps, got '{}'", name),
       recorded_.watched.empty() ? "set it to \"*\"" : "Trainer::plan() lists them all");
}

/// There is no lower scale to try: says which gradients overflow, and throws.
void Trainer::Impl::stop_at_floor() {
  if (overflowed_at_floor_ == 0) return;
  finish();
  std::vector<std::string> names;
  for (const state::ParameterSlot& slot : layout_.parameters.slots()) {
    if (slot.training.frozen) continue;
    const std::vector<float> gradient =
        download(buffers_[state::buffers::gradients], slot, {form_.compute, slot.type.shape});
    const bool finite = std::ranges::all_of(gradient, [](float v) { return std::isfinite(v); });
    if (!finite) names.push_back(fmt::format("'{}'", slot.name));
  }
  fail(ErrorCode::numerics, "trainer",
       fmt::format("expected finite gradients at the loss scale's floor of {}, got an overflow in step {}: in {}",
                   precision_.loss_scale.floor, std::exchange(overflowed_at_floor_, 0),
                   names.empty() ? "none of the step after it" : fmt::format("{}", fmt::join(names, ", "))),
       "a lower floor or rate, or these layers in f32");
}

/// Says which operator made the first number that training is to stop at, and throws.
void Trainer::Impl::stop_where_broken(const step::Slot& slot) {
  --submitted_;  // the step has left nothing behind: the next one takes its place, and its batch
  for (const step::Watched& watched : recorded_.watched) {
    const auto element = step::first_bad(row_of(slot, watched), watched.stop);
    if (!element) continue;
    fail(
        ErrorCode::numerics, "trainer",
        fmt::format("expected finite numbers in step {}, got {}{}", latest_.step + 1, describe(watched, *element, slot),
                    accumulate_ > 1 ? fmt::format(" in micro-batch {}", watched.micro_batch) : ""),
        "the weights are as they were before the step, and can be saved");
  }
}

std::string Trainer::Impl::describe(const step::Watched& broken, std::uint64_t element, const step::Slot& slot) {
  const TensorType& type = broken.tensor.type;
  const bool is_nan = std::isnan(values_of(broken.tensor, slot)[element]);
  const Shape place = place_of(element, type.shape);
  bool by_zero = false;
  std::vector<std::string> inputs;
  for (const step::Recorded& input : broken.inputs) {
    if (input.type.dtype == DType::u32) continue;
    const std::vector<float> values = values_of(input, slot);
    // The divisor is the last input.
    by_zero = broken.divides && values[broadcast_element(place, input.type.shape)] == 0;
    inputs.push_back(
        fmt::format("'{}' {}", input.name, describe_values(values, input.type.shape, element, type.shape)));
  }
  return fmt::format("{} from {} in '{}' {} at {}, of inputs {} ({})", is_nan ? "NaN" : "infinity", broken.op,
                     broken.tensor.name, to_string(type), to_string(place),
                     inputs.empty() ? "that were fed" : fmt::format("{}", fmt::join(inputs, ", ")),
                     flags(is_nan, by_zero));
}

}  // namespace halfstep
