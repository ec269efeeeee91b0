#include "train/recorder.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "state/step_state.h"
#include "step/statistics.h"

namespace halfstep::train {
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

/// The first element that is an infinity or NaN that `stop` names.
std::size_t first_bad(const std::vector<float>& values, const StopOn& stop) {
  const auto found = std::ranges::find_if(
      values, [&](float value) { return (stop.overflow && std::isinf(value)) || (stop.invalid && std::isnan(value)); });
  return std::min(static_cast<std::size_t>(found - values.begin()), values.size() - 1);
}

/// Of a NaN, or of an infinity: made by a divisor of 0, or given with a dividend.
std::string flags(bool is_nan, bool by_zero, bool given) {
  NumericsFlags raised;
  raised.overflow = !is_nan && !by_zero && !given;
  raised.divide_by_zero = !is_nan && by_zero && !given;
  raised.invalid = is_nan;
  return fmt::format("OFLO {:d}, DIV0 {:d}, INV {:d}", raised.overflow, raised.divide_by_zero, raised.invalid);
}

std::span<const std::byte> row_of(const run::Slot& slot, const step::Watched& watched) {
  return {slot.report.mapped() + watched.row.value_or(0), 4 * step::reported_words};
}

}  // namespace

Recorder::Recorder(run::Workspace workspace, const step::StepGraph& graph, const TrainerOptions& options,
                   const Balancer& balancer, Reports& reports, Batches& batches, Made made)
    : workspace_(std::move(workspace)),
      graph_(graph),
      options_(options),
      balancer_(balancer),
      reports_(reports),
      batches_(batches),
      made_(std::move(made)) {
  const std::string all(1, '*');
  const StopOn& stop = options.precision.stop_on;
  watch_.stop = stop;
  watch_.keep = stop.any() ? all : options.trace;
  if (stop.any()) watch_.statistics = all;
  if (!watch_.keep.empty()) make(lower(watch_));
}

step::StepProgram Recorder::lower(const step::Watch& watch) const {
  return step::training_program(workspace_.runtime->target, graph_, workspace_.store->spec().layout, options_,
                                balancer_.share(), watch);
}

void Recorder::make(step::StepProgram lowered) {
  program_.reset();
  program_ = std::make_unique<run::Program>(
      workspace_, std::move(lowered), [this](const run::Program&, const run::Slot& slot) { read(slot); },
      run::Program::Options{.own_arena = true});
  made_(*program_);
}

void Recorder::take_share() {
  if (!watch_.keep.empty() || !watch_.statistics.empty()) make(lower(watch_));
}

std::optional<step::StepProgram> Recorder::looking_at(std::string_view pattern, std::uint64_t every) const {
  if (every == 0) fail("watch", "expected one step out of 1 or more, got 0");
  if (!watch_.keep.empty()) {
    fail("watch", "expected a trainer that looks at no tensors yet, got one with stop_on or trace",
         "stop_on looks at every tensor of every step already");
  }
  if (pattern.empty()) return {};
  step::Watch watch = watch_;
  watch.statistics = pattern;
  step::StepProgram lowered = lower(watch);
  if (!lowered.watched.empty()) return lowered;
  fail("watch", fmt::format("expected a pattern of tensors' names, got '{}', which none has", pattern),
       "Inspector::plan() lists them; \"*gradient\" are the gradients of parameters");
}

void Recorder::watch(std::string_view pattern, std::uint64_t every, std::optional<step::StepProgram> lowered) {
  watch_.statistics.clear();  // until there is a program
  program_.reset();
  if (lowered) make(std::move(*lowered));
  watch_.statistics = pattern;
  every_ = every;
}

void Recorder::read(const run::Slot& slot) {
  const step::ReportHeader header = slot.header();
  if ((header.overflow & state::stopped_flag) != 0) return stop_where_broken(slot);
  reports_.read(*program_, slot);
  if (watch_.stop.any()) return;
  for (const step::Watched& each : watched()) {
    if (!each.row) continue;
    TensorStatistics& record = records_.emplace_back(
        step::read_statistics(row_of(slot, each), static_cast<std::uint64_t>(elements(each.tensor.type.shape))));
    record.name = each.tensor.name;
    record.op = each.op;
    record.micro_batch = each.micro_batch;
    record.step = header.attempted[0] | static_cast<std::uint64_t>(header.attempted[1]) << 32;
    record.loss_scale = header.loss_scale;
  }
}

std::vector<TensorStatistics> Recorder::take_records() {
  return std::exchange(records_, {});
}

std::vector<float> Recorder::trace(std::string_view name) {
  const bool kept = program_ && matches(watch_.keep, name) && program_->slots().last_ticket() > 0;
  if (kept) {
    for (const step::Watched& each : watched() | std::views::reverse) {
      if (each.tensor.name == name) return values_of(each.tensor, program_->slots().last());
    }
  }
  fail("trace", fmt::format("expected a tensor that TrainerOptions::trace keeps, got '{}'", name),
       !program_ || watched().empty() ? "set it to \"*\"" : "Inspector::plan() lists them all");
}

/// Says which operator made the first number that training is to stop at, and throws.
void Recorder::stop_where_broken(const run::Slot& slot) {
  batches_.take_step_back();  // the step has left nothing behind: the next one takes its place, and its batch
  for (const step::Watched& each : watched()) {
    if (!step::is_bad(row_of(slot, each), each.stop)) continue;
    const std::string batch = options_.accumulate > 1 ? fmt::format(" in micro-batch {}", each.micro_batch) : "";
    fail(ErrorCode::numerics, "trainer",
         fmt::format("expected finite numbers in step {}, got {}{}", reports_.latest().step + 1, describe(each, slot),
                     batch),
         "the weights are as they were before the step, and can be saved");
  }
}

std::string Recorder::describe(const step::Watched& broken, const run::Slot& slot) const {
  const TensorType& type = broken.tensor.type;
  const std::vector<float> results = values_of(broken.tensor, slot);
  const std::size_t element = first_bad(results, broken.stop);
  const bool is_nan = std::isnan(results[element]);
  const Shape place = place_of(element, type.shape);
  bool by_zero = false;
  bool given = false;
  std::vector<std::string> inputs;
  for (const step::Recorded& input : broken.inputs) {
    if (input.type.dtype == DType::u32) continue;
    const std::vector<float> values = values_of(input, slot);
    if (broken.divides) {
      // The divisor is the last input.
      const float value = values[broadcast_element(place, input.type.shape)];
      by_zero = value == 0;
      given = given || std::isinf(value);
    }
    inputs.push_back(
        fmt::format("'{}' {}", input.name, describe_values(values, input.type.shape, element, type.shape)));
  }
  return fmt::format("{} from {} in '{}' {} at {}, of inputs {} ({})", is_nan ? "NaN" : "infinity", broken.op,
                     broken.tensor.name, to_string(type), to_string(place),
                     inputs.empty() ? "that were fed" : fmt::format("{}", fmt::join(inputs, ", ")),
                     flags(is_nan, by_zero, given));
}

}  // namespace halfstep::train
