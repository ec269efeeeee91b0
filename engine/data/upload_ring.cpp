#include "data/upload_ring.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace halfstep::data {

void gather(std::span<const Field> fields, std::span<const std::uint32_t> indices, HostBatch& batch) {
  batch.fields.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const auto element_bytes = static_cast<std::size_t>(bytes(field.type));
    const std::size_t sample_bytes = static_cast<std::size_t>(elements(field.shape)) * element_bytes;
    const std::size_t step_bytes = static_cast<std::size_t>(field.step()) * element_bytes;
    const std::byte* const from = field.data.data() + static_cast<std::size_t>(field.first) * element_bytes;
    batch.fields[i].resize(indices.size() * sample_bytes);
    std::byte* to = batch.fields[i].data();
    for (const std::uint32_t index : indices) {
      std::memcpy(to, from + index * step_bytes, sample_bytes);
      to += sample_bytes;
    }
  }
}

UploadRing::UploadRing(Fill fill, std::int64_t first_step, std::size_t batches)
    : fill_(std::move(fill)), first_step_(first_step), batches_(std::max<std::size_t>(batches, 2)) {
  try {
    thread_ = std::thread(&UploadRing::produce, this, first_step);
  } catch (const std::system_error& error) {
    fail(ErrorCode::system, "data",
         fmt::format("expected another thread, to gather batches, got none: {}", error.code().message()));
  }
}

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
  // A request for the next batch releases the previous one and its batch.
  taken_ = wanted + 1;
  changed_.notify_all();
  const auto ready = [&] { return filled_ > wanted || failure_; };
  if (!ready()) ++waits_;
  changed_.wait(lock, ready);
  if (filled_ <= wanted) std::rethrow_exception(failure_);
  return batches_[wanted % batches_.size()];
}

void UploadRing::produce(std::int64_t step) {
  for (;; step++) {
    HostBatch* batch = nullptr;
    {
      std::unique_lock lock(mutex_);
      // One batch stays reserved for the batch in use.
      changed_.wait(lock, [&] { return stop_ || filled_ < std::max<std::uint64_t>(taken_, 1) + batches_.size() - 1; });
      if (stop_) return;
      batch = &batches_[filled_ % batches_.size()];
    }
    try {
      fill_(step, *batch);
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
