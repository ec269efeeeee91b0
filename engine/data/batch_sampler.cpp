#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/philox.h"

namespace halfstep {

namespace {

// Separates the draws for the order of samples from every other use of a seed.
constexpr std::uint32_t shuffle_stream = 0x53485546;

void check(std::int64_t count, std::int64_t batch_size) {
  if (batch_size <= 0) fail("data", fmt::format("expected a positive batch size, got {}", batch_size));
  if (count <= 0) fail("data", fmt::format("expected at least one sample, got {}", count));
  if (count >= no_sample) fail("data", fmt::format("expected fewer than {} samples, got {}", no_sample, count));
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t count, std::int64_t batch_size, std::int64_t batches, std::uint64_t seed,
                           bool shuffled)
    : count_(count), batch_size_(batch_size), batches_(batches), seed_(seed), shuffled_(shuffled) {
  order_.resize(static_cast<std::size_t>(std::max(count, batches * batch_size)), no_sample);
  std::iota(order_.begin(), order_.begin() + count, 0U);
}

BatchSampler BatchSampler::training(std::int64_t count, std::int64_t batch_size, std::uint64_t seed) {
  check(count, batch_size);
  if (batch_size > count) {
    fail("data", fmt::format("expected at least one batch of {} samples, got {} samples", batch_size, count),
         "use a smaller batch or more samples");
  }
  return {count, batch_size, count / batch_size, seed, true};
}

BatchSampler BatchSampler::evaluation(std::int64_t count, std::int64_t batch_size) {
  check(count, batch_size);
  const std::int64_t batches = count / batch_size + (count % batch_size != 0);
  if (batches > static_cast<std::int64_t>(no_sample) / batch_size) {
    fail("data", fmt::format("expected a batch size below {}, got {}", no_sample, batch_size));
  }
  return {count, batch_size, batches, 0, false};
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

std::span<const std::uint32_t> BatchSampler::batch(std::int64_t step) {
  if (step < 0) fail("data", fmt::format("expected a step from 0 on, got {}", step));
  if (shuffled_ && shuffled_epoch_ != epoch(step)) shuffle(epoch(step));
  const std::int64_t first = step % batches_ * batch_size_;
  return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(batch_size_));
}

}  // namespace halfstep
