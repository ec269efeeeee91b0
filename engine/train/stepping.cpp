// How steps are submitted: whole, or in parts within a budget.
#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "train/trainer_impl.h"

namespace halfstep {

Trainer::Impl::Fill Trainer::Impl::from_supply() {
  if (reads_shared_only()) return [](const run::Program&, run::Slot&) {};
  batches->check_supply();
  return [this](const run::Program& program, run::Slot& slot) { batches->fill(program, slot); };
}

Trainer::Impl::Fill Trainer::Impl::from_values(const std::map<std::string, Values>& inputs) {
  if (own().graph.samples) fail("trainer", "expected steps from the training set, got values");
  training().check_names("trainer", inputs);
  return [&](const run::Program& program, run::Slot& slot) { program.fill(slot, "trainer", inputs); };
}

bool Trainer::Impl::reads_shared_only() const {
  return own().graph.inputs.empty() && !own().graph.samples;
}

void Trainer::Impl::record(VkCommandBuffer commands) {
  if (rank_exchange) {
    fail("trainer", "expected one rank to record a step into a command buffer, got several",
         "the host exchanges gradients in the middle of each step");
  }
  if (!reads_shared_only()) {
    fail("trainer", "expected a trainer whose inputs are all shared to record a step of, got one that is given values",
         "see TrainerOptions::shared_inputs");
  }
  const auto refuse = [](const char* what, const char* hint) {
    fail("trainer", fmt::format("expected a trainer without {} to record a step of, got one with it", what), hint);
  };
  if (options.precision.stop_on.any()) refuse("Precision::stop_on", "the host must see each step before the next one");
  if (options.snapshot_every > 0) refuse("snapshot_every", "checkpoint() copies the state between executions");
  if (!options.trace.empty()) refuse("trace", "a recorded step keeps no tensors");
  end_open_step();
  training().record(commands, false);
}

void Trainer::Impl::executed() {
  const bool was_kept = training().read_recorded();
  batches->count_step();
  if (!was_kept) {
    fail("trainer",
         fmt::format("expected at most {} executions of a recorded step to await Trainer::executed, got more",
                     step::kept_reports - 1),
         "call it once for each execution that has finished; the report of this one is lost");
  }
  stop_at_floor();
}

void Trainer::Impl::before_step() {
  end_open_step();
  if (local_steps) local_steps->put_back();
  stop_at_floor();
  keep_snapshot();
}

Trainer::Impl::Step Trainer::Impl::next_step() {
  before_step();
  const std::size_t next = batches->next_bucket();
  const Part& part = *parts[next];
  return {next, part.recorder->looks_at_next_step() ? part.recorder->program() : part.training.get()};
}

void Trainer::Impl::submitted(const Step& step) {
  submits_ = {submits_.back(), step.program->slots().last_ticket()};
  last_part = step.part;
  batches->count_step();
}

void Trainer::Impl::count_for_ranks() {
  if (local_steps) local_steps->count_step();
  if (rank_exchange) rank_exchange->count_step();
}

/// To be called where a step could not be submitted. Where it has begun, it is open: what has run must not run again.
void Trainer::Impl::keep_open(const Step& step) {
  if (step.program->slots().is_open()) open_ = step;
}

void Trainer::Impl::step(const Fill& fill) {
  if (failed_) return end_failed_step(fill);
  // The other programs' reports, of steps that have finished: an Error after this step would have it made again, and
  // ranks must know of an overflow at the same step.
  if (parts.size() > 1 || rank_exchange) poll();
  if (balancer->begin_step() || !share_taken_) take_share();
  const Step next = next_step();
  const run::Slots& slots = next.program->slots();
  const run::Slots::Waits before = slots.waits();
  const auto start = std::chrono::steady_clock::now();
  try {
    submit_step(next, fill);
  } catch (...) {
    failed_ = open_.has_value();
    throw;
  }
  host_times.add(std::chrono::steady_clock::now() - start - (slots.waits().time - before.time));
  waits_for_slot += slots.waits().for_slot - before.for_slot;
  count_for_ranks();
  // A broken step must be known before the next one begins.
  if (options.precision.stop_on.any()) next.program->slots().drain();
}

void Trainer::Impl::submit_step(const Step& step, const Fill& fill) {
  run::Slots& slots = step.program->slots();
  fill(*step.program, slots.acquire(submits_.front()));
  const vk::Timeline& timeline = workspace.runtime->timeline;
  const std::uint64_t waits = timeline.waits() - slots.waits().in_turns;
  try {
    slots.submit();
  } catch (...) {
    keep_open(step);
    throw;
  }
  submitted(step);
  waits_elsewhere += timeline.waits() - slots.waits().in_turns - waits;
}

void Trainer::Impl::timed_step(const Fill& fill) {
  before_step();
  submit_step({parts.size() - 1, timed.get()}, fill);
}

bool Trainer::Impl::run_for(double seconds, const Fill& fill) {
  if (rank_exchange) fail("trainer", "expected one rank to run within a budget, got several", "they step together");
  // Another program may have needed the device, and have submitted the rest.
  if (open_ && !open_->program->slots().is_open()) end_open_step();
  if (!workspace.runtime->timeline.finished(parts_.front())) return false;
  if (!open_) poll();  // as in step()
  const Step step = open_ ? *open_ : next_step();
  run::Slots& slots = step.program->slots();
  if (!open_) fill(*step.program, slots.acquire(submits_.front()));
  bool all = false;
  try {
    all = slots.submit_for(seconds);
  } catch (...) {
    keep_open(step);
    throw;
  }
  open_ = step;
  parts_ = {parts_.back(), slots.last_ticket()};
  if (all) end_open_step();
  return all;
}

/// Submits what is left of the open step.
void Trainer::Impl::end_open_step() {
  if (!open_) return;
  const Step step = *open_;
  if (step.program->slots().is_open()) step.program->slots().submit();
  failed_ = false;
  open_.reset();
  submitted(step);
  count_for_ranks();
  if (options.precision.stop_on.any()) step.program->slots().drain();
}

/// Ends the step that step() has begun, in place of another one. It goes on with what it began on, so `fill` must give
/// that again.
void Trainer::Impl::end_failed_step(const Fill& fill) {
  workspace.runtime->timeline.wait_for_all();  // the device may read the slot
  run::Slot& slot = open_->program->slots().newest();
  const std::span<std::byte> input(slot.input.mapped(), slot.input.bytes());
  const std::vector<std::byte> begun_on(input.begin(), input.end());
  bool same = false;
  try {
    fill(*open_->program, slot);
    same = std::ranges::equal(begun_on, input);
  } catch (...) {
    std::ranges::copy(begun_on, input.begin());
    throw;
  }
  std::ranges::copy(begun_on, input.begin());
  if (!same) {
    fail("trainer", "expected the values of the step that could be submitted only in part, got others",
         "finish() ends that step");
  }
  end_open_step();
}

void Trainer::Impl::keep_snapshot() {
  const auto every = static_cast<std::uint64_t>(options.snapshot_every);
  if (every == 0 || (origin.snapshot && batches->steps() < origin.snapshot_step + every)) return;
  origin.snapshot = checkpoint({});
  origin.snapshot_step = batches->steps();
}

/// There is no lower scale to try: says which gradients overflow, and throws. Ranks that exchange gradients throw
/// together, or some would wait for the others: two steps later, when the report of the step has been read on each.
void Trainer::Impl::stop_at_floor() {
  const std::uint64_t overflowed = reports->overflowed_at_floor();
  if (overflowed == 0) return;
  if (options.ranks.exchange_gradients() && batches->steps() < overflowed + 2) return;
  finish();
  std::vector<std::string> names;
  for (const state::ParameterEntry& entry : workspace.store->spec().layout.parameters.entries()) {
    if (entry.training.frozen) continue;
    const std::vector<float> gradient = workspace.store->read_gradient(entry);
    const bool finite = std::ranges::all_of(gradient, [](float v) { return std::isfinite(v); });
    if (!finite) names.push_back(fmt::format("'{}'", entry.name));
  }
  fail(ErrorCode::numerics, "trainer",
       fmt::format("expected finite gradients at the loss scale's floor of {}, got an overflow in step {}: in {}",
                   options.precision.loss_scale.floor, reports->take_overflowed_at_floor(),
                   !names.empty()                ? fmt::format("{}", fmt::join(names, ", "))
                   : options.ranks.share_state() ? "none of this rank's parts"
                                                 : "none of the step after it"),
       "a lower floor or rate, or these layers in f32");
}

/// Those that run steps.
std::vector<run::Program*> Trainer::Impl::programs() const {
  std::vector<run::Program*> all;
  for (const auto& part : parts) {
    if (part->training) all.push_back(part->training.get());
    if (part->recorder->program() != nullptr) all.push_back(part->recorder->program());
  }
  if (timed) all.push_back(timed.get());
  return all;
}

void Trainer::Impl::finish() {
  end_open_step();
  for (run::Program* program : programs()) program->slots().drain();
  if (local_steps) local_steps->put_back();
}

void Trainer::Impl::poll() {
  for (run::Program* program : programs()) program->slots().poll();
}

}  // namespace halfstep
