#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "base/philox.h"

namespace halfstep {

namespace {

// Separates the draws for the order of samples from every other use of a seed.
constexpr std::uint32_t shuffle_stream = 0x53485546;
constexpr std::uint32_t batches_stream = 0x42415443;  // likewise for the order of batches

void check(std::int64_t count, std::int64_t batch_size) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (batch_size <= 0) fail("data", fmt::format("expected a positive batch size, got {}", batch_size));
  if (count <= 0) fail("data", fmt::format("expected at least one sample, got {}", count));
  if (count >= most) fail("data", fmt::format("expected fewer than {} samples, got {}", most, count));
  if (batch_size >= most) fail("data", fmt::format("expected a batch size below {}, got {}", most, batch_size));
}

/// 0, 1, ... in an order of the epoch's own: a Fisher-Yates shuffle, so that it does not depend on earlier epochs.
void draw_order(std::vector<std::uint32_t>& order, std::uint32_t stream, std::int64_t epoch, std::uint64_t seed) {
  std::iota(order.begin(), order.end(), 0U);
  const auto count = static_cast<std::uint32_t>(order.size());
  const auto low = static_cast<std::uint32_t>(epoch);
  const auto high = static_cast<std::uint32_t>(epoch >> 32);
  std::array<std::uint32_t, 4> draws{};
  for (std::uint32_t last = count - 1; last > 0; last--) {
    const std::uint32_t draw = count - 1 - last;
    if (draw % 4 == 0) draws = process::philox4x32({draw / 4, stream, low, high}, process::philox_key(seed));
    // A word scaled to [0, last]: the probabilities differ by less than count / 2^32.
    const auto other = static_cast<std::uint32_t>(std::uint64_t{draws[draw % 4]} * (std::uint64_t{last} + 1) >> 32);
    std::swap(order[last], order[other]);
  }
}

void check_step(std::int64_t step) {
  if (step < 0) fail("data", fmt::format("expected a step from 0 on, got {}", step));
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t count, std::int64_t batch_size, std::uint64_t seed, bool shuffled)
    : count_(count), batch_size_(batch_size), batches_(count / batch_size), seed_(seed), shuffled_(shuffled) {
  if (shuffled) order_.resize(static_cast<std::size_t>(count));
  if (!shuffled) batch_.resize(static_cast<std::size_t>(batch_size));
}

BatchSampler BatchSampler::training(std::int64_t count, std::int64_t batch_size, std::uint64_t seed) {
  check(count, batch_size);
  if (batch_size > count) {
    fail("data", fmt::format("expected at least one batch of {} samples, got {} samples", batch_size, count),
         "use a smaller batch or more samples");
  }
  return {count, batch_size, seed, true};
}

BatchSampler BatchSampler::evaluation(std::int64_t count, std::int64_t batch_size) {
  check(count, batch_size);
  BatchSampler sampler(count, batch_size, 0, false);
  sampler.place_rest();
  return sampler;
}

BatchSampler BatchSampler::training(std::vector<std::uint32_t> buckets, std::int64_t batch_size, std::uint64_t seed) {
  BatchSampler sampler = training(std::ssize(buckets), batch_size, seed);
  sampler.buckets_ = std::move(buckets);
  sampler.turns_.resize(static_cast<std::size_t>(sampler.batches_));
  return sampler;
}

BatchSampler BatchSampler::evaluation(std::vector<std::uint32_t> buckets, std::int64_t batch_size) {
  BatchSampler sampler = evaluation(std::ssize(buckets), batch_size);
  sampler.buckets_ = std::move(buckets);
  sampler.order_.resize(sampler.buckets_.size());
  std::iota(sampler.order_.begin(), sampler.order_.end(), 0U);
  sampler.sort_by_bucket(sampler.count_);
  return sampler;
}

void BatchSampler::place_rest() {
  std::int64_t size = batch_size_;
  for (std::int64_t first = batches_ * batch_size_; first < count_; first += size) {
    size = std::min(size, count_ - first);
    while (batch_size_ % size != 0) --size;
    rest_.push_back({first, size});
  }
  batches_ += std::ssize(rest_);
}

void BatchSampler::shuffle(std::int64_t epoch) {
  draw_order(order_, shuffle_stream, epoch, seed_);
  if (!buckets_.empty()) {
    sort_by_bucket(batches_ * batch_size_);
    draw_order(turns_, batches_stream, epoch, seed_);
  }
  shuffled_epoch_ = epoch;
}

// Only the epoch's own samples: those after its last full batch must not depend on their length.
void BatchSampler::sort_by_bucket(std::int64_t samples) {
  std::stable_sort(order_.begin(), order_.begin() + samples,
                   [&](std::uint32_t a, std::uint32_t b) { return buckets_[a] < buckets_[b]; });
}

BatchSampler::Range BatchSampler::evaluated(std::int64_t step) const {
  const std::int64_t batch = step % batches_;
  const std::int64_t full = count_ / batch_size_;
  if (batch < full) return {batch * batch_size_, batch_size_};
  return rest_[static_cast<std::size_t>(batch - full)];
}

std::int64_t BatchSampler::samples(std::int64_t step) const {
  check_step(step);
  return shuffled_ ? batch_size_ : evaluated(step).count;
}

std::span<const std::uint32_t> BatchSampler::batch(std::int64_t step) {
  check_step(step);
  if (shuffled_) {
    if (shuffled_epoch_ != epoch(step)) shuffle(epoch(step));
    const std::int64_t turn = step % batches_;
    const std::int64_t batch = turns_.empty() ? turn : turns_[static_cast<std::size_t>(turn)];
    return std::span(order_).subspan(static_cast<std::size_t>(batch * batch_size_),
                                     static_cast<std::size_t>(batch_size_));
  }
  const Range range = evaluated(step);
  const std::int64_t times = batch_size_ / range.count;
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    const std::int64_t sample = range.first + i / times;
    batch_[static_cast<std::size_t>(i)] =
        order_.empty() ? static_cast<std::uint32_t>(sample) : order_[static_cast<std::size_t>(sample)];
  }
  return batch_;
}

// A batch is sorted by bucket.
std::uint32_t BatchSampler::bucket(std::int64_t step) {
  check_step(step);
  return buckets_.empty() ? 0 : buckets_[batch(step).back()];
}

}  // namespace halfstep
