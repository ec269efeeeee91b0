#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "plan/host_tensor.h"
#include "train/feed.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

using Clock = std::chrono::steady_clock;

/// How many steps' host times are kept for the median.
constexpr std::size_t host_times_kept = 8192;

float scalar_at(const std::byte* place) {
  float value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <typename Element>
void copy_into(const vk::Buffer& buffer, std::uint64_t offset, std::span<const Element> values) {
  std::memcpy(buffer.mapped() + offset, values.data(), values.size_bytes());
}

/// Puts a gathered batch into a slot; its indices count from 0, or are no sample.
void fill_gathered(step::Slot& slot, const step::SlotLayout& layout, const data::HostBatch& batch) {
  std::vector<std::uint32_t> indices(batch.labels.size());
  std::iota(indices.begin(), indices.end(), 0U);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (batch.labels[i] == ignored_label) indices[i] = no_sample;
  }
  copy_into<std::uint32_t>(slot.input, layout.indices, indices);
  copy_into<std::uint8_t>(slot.input, layout.bytes, batch.samples);
  copy_into<std::uint32_t>(slot.input, layout.labels, batch.labels);
}

}  // namespace

void Trainer::Impl::step() {
  check_set();
  stop_at_floor();
  step::Slots& slots = slots_of_next_step();
  const auto start = Clock::now() - slots.waited();
  fill_from_set(slots.acquire());
  submit(slots, start + slots.waited());
}

void Trainer::Impl::step(const std::map<std::string, Values>& inputs) {
  check_inputs(inputs);
  stop_at_floor();
  step::Slots& slots = slots_of_next_step();
  const auto start = Clock::now() - slots.waited();
  fill_from_values(slots.acquire(), inputs);
  submit(slots, start + slots.waited());
}

void Trainer::Impl::check_set() const {
  if (set_ == nullptr) fail("trainer", "expected a training set to step through, got none", "give the step values");
}

void Trainer::Impl::check_inputs(const std::map<std::string, Values>& inputs) const {
  if (!batch_shape_.empty()) fail("trainer", "expected steps from the training set, got values");
  for (const auto& [name, values] : inputs) {
    if (std::ranges::find(inputs_, name, &InputInfo::name) == inputs_.end()) {
      fail("trainer", fmt::format("expected values for the graph's inputs only, got some for '{}'", name));
    }
  }
}

void Trainer::Impl::fill_from_values(step::Slot& slot, const std::map<std::string, Values>& inputs) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto found = inputs.find(inputs_[i].name);
    if (found == inputs.end())
      fail("trainer", fmt::format("expected values for input '{}', got none", inputs_[i].name));
    put(slot, i, found->second);
  }
}

/// `start` is when the host's work began, its wait for the slot left out.
void Trainer::Impl::submit(step::Slots& slots, Clock::time_point start) {
  const std::uint64_t waits = timeline_.waits();
  slots.submit();
  ++submitted_;
  waits_elsewhere_ += timeline_.waits() - waits;
  const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  if (host_microseconds_.size() < host_times_kept) {
    host_microseconds_.push_back(microseconds);
  } else {
    host_microseconds_[submitted_ % host_times_kept] = microseconds;
  }
  if (precision_.stop_on.any()) slots.drain();  // a broken step must be known before the next one begins
}

void Trainer::Impl::fill_from_set(step::Slot& slot) {
  if (ring_) {
    fill_gathered(slot, training_.slot, ring_->batch(drawn()));
  } else {
    copy_into(slot.input, training_.slot.indices, sampler_->batch(drawn()));
  }
}

/// Puts the values of input `index` into a slot, those of each micro-batch in its place.
void Trainer::Impl::put(step::Slot& slot, std::size_t index, const Values& values) {
  const InputInfo& input = inputs_[index];
  const auto wanted = static_cast<std::size_t>(elements(input.type.shape));
  const std::size_t given = std::visit([](const auto& span) { return span.size(); }, values);
  const bool words = std::holds_alternative<std::span<const std::uint32_t>>(values);
  if (given != wanted * accumulate_ || words != (input.type.dtype == DType::u32)) {
    const std::string times = accumulate_ > 1 ? fmt::format("{} times ", accumulate_) : "";
    fail("trainer", fmt::format("expected {}{} values of {} for input '{}', got {} of {}", times, wanted,
                                to_string(input.type), input.name, given, words ? "u32" : "f32"));
  }
  for (std::size_t i = 0; i < accumulate_; ++i) {
    const std::vector<std::byte> memory = std::visit(
        [&](const auto& span) { return plan::to_memory(input.type, span.subspan(i * wanted, wanted)); }, values);
    copy_into<std::byte>(slot.input, training_.slot.values[i * inputs_.size() + index], memory);
  }
}

/// The loss (value 0) or a metric of a training step: the mean over its micro-batches.
float Trainer::Impl::reported(const step::Slot& slot, std::size_t value) const {
  double sum = 0;
  for (std::size_t i = 0; i < accumulate_; ++i) {
    sum += static_cast<double>(scalar_at(slot.place(1 + i * (1 + metric_names_.size()) + value)));
  }
  return static_cast<float>(sum / accumulate_);
}

/// Of a step that was not stopped.
void Trainer::Impl::read_report(const step::Slot& slot) {
  const step::ReportHeader header = slot.header();
  StepReport report;
  report.step = header.attempted[0] | static_cast<std::uint64_t>(header.attempted[1]) << 32;
  report.applied = header.applied;
  report.skipped = header.skipped;
  report.left_out = header.left_out;
  report.overflowed = header.overflow != 0;
  report.loss_scale = header.loss_scale;
  report.rate = header.rate;
  report.clip = header.clip;
  report.loss = reported(slot, 0);
  ++totals_.steps;
  if (std::isfinite(report.loss)) {
    ++finite_losses_;
    totals_.mean_loss += static_cast<double>(report.loss);
  }
  for (std::size_t i = 0; i < metric_names_.size(); ++i) {
    const float value = reported(slot, 1 + i);
    report.metrics[metric_names_[i]] = value;
    totals_.mean_metrics[metric_names_[i]] += static_cast<double>(value);
  }
  const LossScale& scale = precision_.loss_scale;
  const bool at_floor = scale.kind == LossScale::Kind::dynamic && report.loss_scale <= scale.floor;
  if (at_floor && report.overflowed && overflowed_at_floor_ == 0) overflowed_at_floor_ = report.step;
  // Reports of recorded steps may be read after those of later ones.
  if (report.step >= latest_.step) latest_ = std::move(report);
}

void Trainer::Impl::finish() {
  training_slots_->drain();
  if (recorded_slots_) recorded_slots_->drain();
}

StepReport Trainer::Impl::report() {
  training_slots_->poll();
  if (recorded_slots_) recorded_slots_->poll();
  return latest_;
}

StepTotals Trainer::Impl::take_totals() {
  finish();
  StepTotals totals = std::exchange(totals_, {});
  const std::uint64_t finite = std::exchange(finite_losses_, 0);
  totals.mean_loss = finite > 0 ? totals.mean_loss / static_cast<double>(finite) : std::nan("");
  for (auto& [name, value] : totals.mean_metrics) value /= static_cast<double>(totals.steps);
  return totals;
}

Evaluation Trainer::Impl::evaluate(const Dataset& set, Weights weights) {
  check_averages(weights);
  if (!evaluation_slots_) fail("evaluate", "expected a trainer with a feed, got one without");
  set.check();
  const Shape& stored = graph_.samples->stored;
  if (set.sample_shape != stored || set.count < 1) {
    fail("evaluate", fmt::format("expected samples of {}, got {} of {} in '{}'", to_string(stored), set.count,
                                 to_string(set.sample_shape), set.name));
  }
  train::check_classes(set, graph_.ir, graph_.samples->labels);
  finish();
  step::Slots& slots = weights == Weights::averaged ? *averaged_slots_ : *evaluation_slots_;
  evaluation_sums_ = {};
  evaluation_left_ = set.count;
  BatchSampler sampler = BatchSampler::evaluation(set.count, batch_shape_.front());
  data::HostBatch batch;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) {
    data::gather(set, sampler.batch(i), batch);
    fill_gathered(slots.acquire(), evaluation_.slot, batch);
    slots.submit();
  }
  slots.drain();
  Evaluation result = std::exchange(evaluation_sums_, {});
  result.loss /= static_cast<double>(result.samples);
  for (auto& [name, value] : result.metrics) value /= static_cast<double>(result.samples);
  return result;
}

/// Loss and metrics are means over the batch's samples, so that each is weighted by how many there are.
void Trainer::Impl::read_evaluation(const step::Slot& slot) {
  const std::int64_t count = std::min(evaluation_left_, batch_shape_.front());
  evaluation_left_ -= count;
  evaluation_sums_.samples += count;
  const auto weight = static_cast<double>(count);
  evaluation_sums_.loss += weight * static_cast<double>(scalar_at(slot.place(1)));
  for (std::size_t i = 0; i < metric_names_.size(); ++i) {
    evaluation_sums_.metrics[metric_names_[i]] += weight * static_cast<double>(scalar_at(slot.place(2 + i)));
  }
}

HostCosts Trainer::Impl::host_costs() const {
  HostCosts costs{.steps = submitted_,
                  .waits_for_slot = training_slots_->waits(),
                  .waits_for_batch = waits_for_batch_ + (ring_ ? ring_->waits() : 0),
                  .waits_elsewhere = waits_elsewhere_};
  if (host_microseconds_.empty()) return costs;
  std::vector<double> times = host_microseconds_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  costs.microseconds_per_step = *middle;
  return costs;
}

}  // namespace halfstep
