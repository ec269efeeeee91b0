#pragma once

#include <halfstep/data.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace halfstep::data {

/// One batch gathered in host memory.
struct HostBatch {
  std::vector<std::uint8_t> samples;  ///< {batch, sample_shape...}
  std::vector<std::uint32_t> labels;  ///< {batch}; ignored_label where there is no sample
};

/// Copies the samples `indices` of `data` into `batch`; zeros and ignored_label where an index is no_sample.
void gather(const Dataset& data, std::span<const std::uint32_t> indices, HostBatch& batch);

/// Gathers batches ahead of the training loop in a thread of its own, for data sets that the device cannot hold.
class UploadRing {
 public:
  /// Fills in batch `step`. Called from the thread only, for first_step, first_step + 1, ... in turn.
  using Fill = std::function<void(std::int64_t step, HostBatch& batch)>;

  /// Starts to gather at once, at most `slots` batches ahead (at least two).
  UploadRing(Fill fill, std::int64_t first_step, std::size_t slots = 3);
  UploadRing(const UploadRing&) = delete;
  UploadRing& operator=(const UploadRing&) = delete;
  /// Stops the thread after the batch in hand.
  ~UploadRing();

  /// Batch `step`, which is first_step, the one asked for last, or the one after it; valid until another is asked for.
  /// Blocks until it has been gathered. Throws Error for any other step, and what `fill` threw for it, from then on.
  const HostBatch& batch(std::int64_t step);
  /// How often batch() had to wait.
  std::uint64_t waits() const { return waits_; }

 private:
  void produce(std::int64_t step);

  Fill fill_;
  std::int64_t first_step_;
  std::vector<HostBatch> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t filled_ = 0;  ///< batches gathered so far
  std::uint64_t taken_ = 0;   ///< batches handed out so far; the newest of them is still in use
  std::uint64_t waits_ = 0;   ///< of batch(), in the caller's thread alone
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< last, so that all it uses is there before it starts
};

}  // namespace halfstep::data
