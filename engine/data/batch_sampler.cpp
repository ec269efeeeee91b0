#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/philox.h"

namespace halfstep {

namespace {

// Separates the draws for the order of samples from every other use of a seed.
constexpr std::uint32_t shuffle_stream = 0x53485546;

void check(std::int64_t count, std::int64_t batch_size) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (batch_size <= 0) fail("data", fmt::format("expected a positive batch size, got {}", batch_size));
  if (count <= 0) fail("data", fmt::format("expected at least one sample, got {}", count));
  if (count >= most) fail("data", fmt::format("expected fewer than {} samples, got {}", most, count));
  if (batch_size >= most) fail("data", fmt::format("expected a batch size below {}, got {}", most, batch_size));
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t count, std::int64_t batch_size, std::uint64_t seed, bool shuffled)
    : count_(count), batch_size_(batch_size), batches_(count / batch_size), seed_(seed), shuffled_(shuffled) {
  order_.resize(static_cast<std::size_t>(shuffled ? count : batch_size));
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

void BatchSampler::place_rest() {
  std::int64_t size = batch_size_;
  for (std::int64_t first = batches_ * batch_size_; first < count_; first += size) {
    size = std::min(size, count_ - first);
    while (batch_size_ % size != 0) --size;
    rest_.push_back({first, size});
  }
  batches_ += std::ssize(rest_);
}

// Fisher-Yates shuffle of the identity, so that an epoch's order does not depend on earlier epochs.
void BatchSampler::shuffle(std::int64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0U);
  const auto low = static_cast<std::uint32_t>(epoch);
  const auto high = static_cast<std::uint32_t>(epoch >> 32);
  std::array<std::uint32_t, 4> draws{};
  for (auto last = static_cast<std::uint32_t>(count_ - 1); last > 0; last--) {
    const std::uint32_t draw = static_cast<std::uint32_t>(count_ - 1) - last;
    if (draw % 4 == 0) draws = process::philox4x32({draw / 4, shuffle_stream, low, high}, process::philox_key(seed_));
    // A word scaled to [0, last]: the probabilities differ by less than count / 2^32.
    const auto other = static_cast<std::uint32_t>(std::uint64_t{draws[draw % 4]} * (std::uint64_t{last} + 1) >> 32);
    std::swap(order_[last], order_[other]);
  }
  shuffled_epoch_ = epoch;
}

BatchSampler::Range BatchSampler::evaluated(std::int64_t step) const {
  const std::int64_t batch = step % batches_;
  const std::int64_t full = count_ / batch_size_;
  if (batch < full) return {batch * batch_size_, batch_size_};
  return rest_[static_cast<std::size_t>(batch - full)];
}

std::int64_t BatchSampler::samples(std::int64_t step) const {
  return shuffled_ ? batch_size_ : evaluated(step).count;
}

std::span<const std::uint32_t> BatchSampler::batch(std::int64_t step) {
  if (step < 0) fail("data", fmt::format("expected a step from 0 on, got {}", step));
  if (shuffled_) {
    if (shuffled_epoch_ != epoch(step)) shuffle(epoch(step));
    const std::int64_t first = step % batches_ * batch_size_;
    return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(batch_size_));
  }
  const Range range = evaluated(step);
  const std::int64_t times = batch_size_ / range.count;
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    order_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(range.first + i / times);
  }
  return order_;
}

}  // namespace halfstep
