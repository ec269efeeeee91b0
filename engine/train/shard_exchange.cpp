#include "train/shard_exchange.h"

#include <cstring>

#include "train/rank_agreement.h"

namespace halfstep::train {
namespace {

namespace buffers = state::buffers;
namespace places = state::exchange_places;

std::vector<std::size_t> scaled(std::span<const std::size_t> ends, std::size_t multiplied, std::size_t divided = 1) {
  std::vector<std::size_t> result;
  for (const std::size_t end : ends) result.push_back(end / divided * multiplied);
  return result;
}

}  // namespace

void ShardExchange::begin_sum(std::span<float> values, std::uint64_t first, std::uint64_t seed, std::uint64_t step) {
  for (const state::Shared& shared : workspace_.store->spec().layout.shard->summed()) {
    if (shared.first < first || shared.first >= first + values.size()) continue;
    exchange_.begin_scattered_sum(values.subspan(shared.first - first, shared.count), shared.ends,
                                  wire_format(options_.ranks, seed, step, shared.first));
  }
}

std::vector<run::Slots::HostTurn> ShardExchange::turns() {
  const auto turn = [this](void (ShardExchange::*take)()) {
    return run::Slots::HostTurn{1, [this, take](run::Slot&, std::span<const std::uint64_t> tickets) {
                                  workspace_.runtime->timeline.wait(tickets.front());
                                  (this->*take)();
                                }};
  };
  return {turn(&ShardExchange::share_findings), turn(&ShardExchange::gather_weights)};
}

/// A gradient that is not finite on one rank is so for all.
void ShardExchange::share_findings() {
  const vk::Buffer& buffer = workspace_.store->buffer(buffers::exchange);
  const state::StoreSpec& spec = workspace_.store->spec();
  const std::uint64_t first = places::step_state(spec.layout);
  buffer.invalidate(first, buffer.bytes() - first);
  state::StepState state;
  std::memcpy(&state, buffer.mapped() + first, sizeof state);
  float overflows = state.overflow != 0 ? 1 : 0;
  exchange_.begin_sum({&overflows, 1}, {});
  if (spec.weights.scaled) gather_words(places::largest(spec.layout));
  if (options_.clip_norm > 0 || options_.gradient_norm) gather_words(places::norms(spec.layout));
  exchange_.wait();
  state.overflow = overflows > 0 ? state::not_finite_flag : 0;
  std::memcpy(buffer.mapped() + first, &state, sizeof state);
  buffer.flush(first, buffer.bytes() - first);
}

/// Of the words of all blocks, each rank has those of its parts.
void ShardExchange::gather_words(std::uint64_t place) {
  constexpr std::uint64_t block = state::gradient_scales::block_elements;
  std::byte* words = workspace_.store->buffer(buffers::exchange).mapped() + place;
  for (const state::Shared& shared : workspace_.store->spec().layout.shard->summed()) {
    exchange_.begin_gather({words + shared.first / block * 4, shared.count / block * 4}, scaled(shared.ends, 4, block));
  }
}

void ShardExchange::gather_weights() {
  const vk::Buffer& buffer = workspace_.store->buffer(buffers::exchange);
  const state::StoreSpec& spec = workspace_.store->spec();
  const std::uint64_t sums = places::states(spec.layout);
  buffer.invalidate(0, sums);
  for (const state::Shared& shared : spec.layout.shard->gathered()) {
    const auto width = static_cast<std::size_t>(bytes(shared.read_masters ? DType::f32 : spec.weights.compute));
    exchange_.begin_gather({buffer.mapped() + 4 * shared.first, shared.count * width}, scaled(shared.ends, width));
  }
  exchange_.wait();
  buffer.flush(0, sums);
}

}  // namespace halfstep::train
