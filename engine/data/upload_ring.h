#pragma once

#include <halfstep/data.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace halfstep::data {

/// One batch gathered in host memory: for each field its samples, one after the other.
struct HostBatch {
  std::vector<std::vector<std::byte>> fields;
};

/// Copies the samples `indices` of each field into `batch`.
void gather(std::span<const Field> fields, std::span<const std::uint32_t> indices, HostBatch& batch);

/// Gathers batches ahead of the training loop on a separate thread: of data sets that do not fit on the device, and of
/// sources.
class UploadRing {
 public:
  /// Fills batch `step`. Called only from that thread, for first_step, first_step + 1, ... in order.
  using Fill = std::function<void(std::int64_t step, HostBatch& batch)>;

  /// Starts gathering immediately, at most `batches` batches ahead (at least two). Throws Error where there can be no
  /// further thread.
  UploadRing(Fill fill, std::int64_t first_step, std::size_t batches = 3);
  UploadRing(const UploadRing&) = delete;
  UploadRing& operator=(const UploadRing&) = delete;
  /// Stops the thread after the current batch.
  ~UploadRing();

  /// Returns batch `step`, which must be first_step, the step of the previous call, or the one after it. Valid until
  /// another step is requested. Blocks until the batch has been gathered. Throws Error for any other step. If `fill`
  /// threw for a step, rethrows that from then on.
  const HostBatch& batch(std::int64_t step);
  /// The number of times that batch() had to wait, or waits. May be asked by any thread.
  std::uint64_t waits() const { return waits_; }

 private:
  void produce(std::int64_t step);

  Fill fill_;
  std::int64_t first_step_;
  std::vector<HostBatch> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t filled_ = 0;              ///< number of batches gathered so far
  std::uint64_t taken_ = 0;               ///< number of batches returned so far; the newest is still in use
  std::atomic<std::uint64_t> waits_ = 0;  ///< counted by batch()
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace halfstep::data
