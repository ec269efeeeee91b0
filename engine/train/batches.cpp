#include "train/batches.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <utility>

namespace halfstep::train {

void LoadTimes::start() {
  const std::lock_guard lock(mutex_);
  noting_ = true;
  loads_.clear();
}

void LoadTimes::add(const Load& load) {
  const std::lock_guard lock(mutex_);
  if (noting_) loads_.push_back(load);
}

std::vector<LoadTimes::Load> LoadTimes::stop() {
  const std::lock_guard lock(mutex_);
  noting_ = false;
  return std::move(loads_);
}

BatchSampler Supply::sampler(std::int64_t batch, std::uint64_t seed) const {
  return buckets.empty() ? BatchSampler::training(count, batch, seed) : BatchSampler::training(buckets, batch, seed);
}

Batches::Batches(std::optional<Supply> supply, std::int64_t batch, const step::Share& share)
    : supply_(std::move(supply)), batch_(batch), share_(share) {
  if (!has_epochs() || supply_->count >= batch_) return;
  fail("trainer",
       fmt::format("expected a training set of at least one batch of {}, got {} samples in '{}'", batch_,
                   supply_->count, supply_->name),
       "make the batch smaller");
}

void Batches::start(std::uint64_t seed, std::uint64_t first_step, std::int64_t drawn) {
  seed_ = seed;
  steps_ = first_step;
  drawn_ahead_ = drawn - static_cast<std::int64_t>(first_step);
  if (!supply_) return;
  if (has_epochs()) sampler_ = supply_->sampler(batch_, seed_);
  if (!supply_->gather) return;
  if (ring_) waits_ += ring_->waits();
  ring_.reset();  // a source is not called by two threads at once
  ring_ = std::make_unique<data::UploadRing>(
      [this, gather = supply_->gather, sampler = sampler_, loads = loads_.get()](std::int64_t step,
                                                                                 data::HostBatch& batch) mutable {
        Wanted wanted{.number = step * share_.ranks + share_.rank};
        if (sampler) wanted = {wanted.number, sampler->bucket(step), own(sampler->batch(step))};
        const auto begin = LoadTimes::Clock::now();
        gather(wanted, batch);
        loads->add({step, begin, LoadTimes::Clock::now()});
      },
      drawn);
}

/// This rank's part of a step's batch.
std::span<const std::uint32_t> Batches::own(std::span<const std::uint32_t> batch) const {
  const std::size_t part = batch.size() / share_.all;
  return batch.subspan(share_.before * part, share_.count * part);
}

void Batches::take(const step::Share& share) {
  if (ring_) waits_ += ring_->waits();
  ring_.reset();  // its thread reads the share
  share_ = share;
  start(seed_, steps_, drawn());
}

void Batches::check_supply() const {
  if (!supply_) fail("trainer", "expected a training set to step through, got none", "give the step values");
}

void Batches::fill(const run::Program& program, run::Slot& slot) {
  if (supply_->gather && !ring_) start(seed_, steps_, drawn());  // it could not be made before
  if (ring_) {
    program.fill(slot, ring_->batch(drawn()));
  } else {
    program.fill(slot, own(sampler_->batch(drawn())));
  }
}

}  // namespace halfstep::train
