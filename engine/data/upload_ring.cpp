#include "data/upload_ring.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace halfstep::data {

void gather(const Dataset& data, std::span<const std::uint32_t> indices, HostBatch& batch) {
  const auto bytes = static_cast<std::size_t>(data.sample_bytes());
  batch.samples.assign(indices.size() * bytes, 0);
  batch.labels.assign(indices.size(), ignored_label);
  for (std::size_t place = 0; place < indices.size(); place++) {
    if (indices[place] == no_sample) continue;
    const auto sample = std::span(data.samples).subspan(indices[place] * bytes, bytes);
    std::copy(sample.begin(), sample.end(), batch.samples.begin() + static_cast<std::ptrdiff_t>(place * bytes));
    batch.labels[place] = data.labels[indices[place]];
  }
}

UploadRing::UploadRing(Fill fill, std::int64_t first_step, std::size_t slots)
    : fill_(std::move(fill)),
      first_step_(first_step),
      slots_(std::max<std::size_t>(slots, 2)),
      thread_(&UploadRing::produce, this, first_step) {}

UploadRing::~UploadRing() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const HostBatch& UploadRing::batch(std::int64_t step) {
  std::unique_lock lock(mutex_);
  const auto wanted = static_cast<std::uint64_t>(step - first_step_);
  if (step < first_step_ || (wanted != taken_ && wanted + 1 != taken_)) {
    fail("data", fmt::format("expected batch {} or the one before it, got {}",
                             first_step_ + static_cast<std::int64_t>(taken_), step));
  }
  // A request for the next batch releases the previous one and its slot.
  taken_ = wanted + 1;
  changed_.notify_all();
  const auto ready = [&] { return filled_ > wanted || failure_; };
  if (!ready()) ++waits_;
  changed_.wait(lock, ready);
  if (filled_ <= wanted) std::rethrow_exception(failure_);
  return slots_[wanted % slots_.size()];
}

void UploadRing::produce(std::int64_t step) {
  for (;; step++) {
    HostBatch* slot = nullptr;
    {
      std::unique_lock lock(mutex_);
      // One slot stays reserved for the batch in use.
      changed_.wait(lock, [&] { return stop_ || filled_ < std::max<std::uint64_t>(taken_, 1) + slots_.size() - 1; });
      if (stop_) return;
      slot = &slots_[filled_ % slots_.size()];
    }
    try {
      fill_(step, *slot);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    const std::lock_guard lock(mutex_);
    filled_++;
    changed_.notify_all();
  }
}

}  // namespace halfstep::data
