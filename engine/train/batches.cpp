#include "train/batches.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include "step/step_program.h"
#include "vk/command/transfer.h"

namespace halfstep::train {
namespace {

std::uint64_t labels_of(const Dataset& set) {
  return step::label_offset(static_cast<std::uint64_t>(set.sample_bytes()), static_cast<std::uint64_t>(set.count));
}

}  // namespace

Batches::Batches(const Dataset* set, std::int64_t batch, bool resident)
    : set_(set), batch_(batch), resident_(resident) {
  if (set_ == nullptr || set_->count >= batch_) return;
  fail("trainer",
       fmt::format("expected a training set of at least one batch of {}, got {} samples in '{}'", batch_, set_->count,
                   set_->name),
       "make the batch smaller");
}

void Batches::start(std::uint64_t seed, std::uint64_t first_step, std::int64_t drawn) {
  seed_ = seed;
  steps_ = first_step;
  drawn_ahead_ = drawn - static_cast<std::int64_t>(first_step);
  if (set_ == nullptr) return;
  sampler_ = BatchSampler::training(set_->count, batch_, seed_);
  if (resident_) return;
  if (ring_) waits_ += ring_->waits();
  ring_ = std::make_unique<data::UploadRing>(
      [set = set_, sampler = *sampler_](std::int64_t step, data::HostBatch& batch) mutable {
        data::gather(*set, sampler.batch(step), batch);
      },
      drawn);
}

void Batches::check_set() const {
  if (set_ == nullptr) fail("trainer", "expected a training set to step through, got none", "give the step values");
}

void Batches::fill(const run::Program& program, run::Slot& slot) {
  if (ring_) {
    program.fill(slot, ring_->batch(drawn()));
  } else {
    program.fill(slot, sampler_->batch(drawn()));
  }
}

std::uint64_t resident_bytes(const Dataset& set) {
  return labels_of(set) + 4 * static_cast<std::uint64_t>(set.count);
}

void upload_set(state::ParameterStore& store, const Dataset& set) {
  const vk::Buffer& buffer = store.buffer(state::buffers::data);
  vk::upload(store.context(), buffer, 0, std::as_bytes(std::span(set.samples)));
  vk::upload(store.context(), buffer, labels_of(set), std::as_bytes(std::span(set.labels)));
}

}  // namespace halfstep::train
