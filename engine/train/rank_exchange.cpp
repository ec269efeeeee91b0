#include "train/rank_exchange.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>
#include <variant>

#include "train/rank_agreement.h"
#include "train/rank_statistics.h"

namespace halfstep::train {
namespace {

namespace buffers = state::buffers;

/// After which the weights of ranks with different devices are compared.
constexpr std::uint64_t first_steps = 16;

/// Of a mapped buffer, from byte `offset` on.
std::span<float> floats_of(const vk::Buffer& buffer, std::uint64_t offset, std::uint64_t count) {
  return {reinterpret_cast<float*>(buffer.mapped() + offset), count};  // NOLINT
}

}  // namespace

RankExchange::RankExchange(const run::Workspace& workspace, const TrainerOptions& options, Balancer& balancer)
    : workspace_(workspace),
      options_(options),
      exchange_(*options.ranks.exchange),
      balancer_(balancer),
      seed_(options.seed) {
  if (options.ranks.share_state()) shard_.emplace(workspace, options);
}

/// A step goes on after statistics when those of all ranks are known, and after the last gradients.
void RankExchange::take_part(run::Program& program) {
  if (!options_.ranks.exchange_gradients()) return;
  const auto& exchanged = program.lowered().exchanged;
  std::vector<run::Slots::HostTurn> turns;
  std::size_t first = 0;
  for (std::size_t i = 0; i < exchanged.size(); ++i) {
    const bool last = i + 1 == exchanged.size();
    if (!last && !std::holds_alternative<step::ExchangedStatistics>(exchanged[i])) continue;
    const auto take = [this, &program, first, last](run::Slot& slot, std::span<const std::uint64_t> tickets) {
      for (std::size_t k = 0; k < tickets.size(); ++k) {
        wait_for(tickets[k]);
        std::visit([&](const auto& what) { exchange(slot, what); }, program.lowered().exchanged[first + k]);
      }
      if (last) end_exchange(program, slot);
    };
    turns.push_back({i + 1 - first, take});
    first = i + 1;
  }
  if (shard_) std::ranges::move(shard_->turns(), std::back_inserter(turns));
  program.slots().set_host_turns(std::move(turns));
}

/// Goes on with sums that are under way meanwhile.
void RankExchange::wait_for(std::uint64_t ticket) {
  if (!sums_under_way_) workspace_.runtime->timeline.wait(ticket);
  while (!workspace_.runtime->timeline.finished(ticket)) {
    exchange_.progress();
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // a software device needs the processor
  }
}

/// The bucket is on its way to the other ranks while the device computes the next.
void RankExchange::exchange(const run::Slot& /*slot*/, const step::ExchangeBucket& bucket) {
  const vk::Buffer& buffer = workspace_.store->buffer(buffers::exchange);
  buffer.invalidate(4 * bucket.first, 4 * bucket.count);
  const std::span<float> values = floats_of(buffer, 4 * bucket.first, bucket.count);
  if (shard_) {
    shard_->begin_sum(values, bucket.first, seed_, steps_);
  } else {
    exchange_.begin_sum(values, wire_format(options_.ranks, seed_, steps_, bucket.first));
  }
  sums_under_way_ = true;
}

void RankExchange::exchange(const run::Slot& slot, const step::ExchangedStatistics& statistics) {
  slot.report.invalidate(statistics.place, 4 * statistics.count);
  exchange_statistics(exchange_, statistics, floats_of(slot.report, statistics.place, statistics.count));
  slot.report.flush(statistics.place, 4 * statistics.count);
  sums_under_way_ = false;
}

/// All gradients are on their way.
void RankExchange::end_exchange(const run::Program& program, const run::Slot& slot) {
  balancer_.end_part();
  const step::StepProgram& lowered = program.lowered();
  const vk::Buffer& buffer = workspace_.store->buffer(buffers::exchange);
  const std::uint64_t states = workspace_.store->spec().layout.states.padded_elements();
  buffer.invalidate(4 * lowered.exchanged_gradients, 4 * states);
  const std::span<float> of_states = floats_of(buffer, 4 * lowered.exchanged_gradients, states);
  for (float& state : of_states) state *= static_cast<float>(lowered.share.count);
  if (states > 0) exchange_.begin_sum(of_states, {});
  begin_reports(program, slot);
  exchange_.wait();
  sums_under_way_ = false;
  for (float& state : of_states) state /= static_cast<float>(lowered.share.all);
  end_reports(program, slot);
  buffer.flush(0, buffer.bytes());
}

/// A step reports what all of its micro-batches report, whose rank has left them in its own report.
void RankExchange::begin_reports(const run::Program& program, const run::Slot& slot) {
  const step::StepProgram& lowered = program.lowered();
  slot.report.invalidate(0, slot.report.bytes());
  reports_.clear();
  for (const step::ReportedValue& value : lowered.reported) {
    for (std::size_t i = 0; i < value.places.size(); ++i) {
      float number = 0;
      if (lowered.share.has(i)) std::memcpy(&number, slot.report.mapped() + value.places[i], sizeof number);
      reports_.push_back(number);
    }
  }
  exchange_.begin_sum(reports_, {});
}

void RankExchange::end_reports(const run::Program& program, const run::Slot& slot) {
  std::size_t next = 0;
  for (const step::ReportedValue& value : program.lowered().reported) {
    for (const std::uint64_t place : value.places) {
      std::memcpy(slot.report.mapped() + place, &reports_[next++], sizeof(float));
    }
  }
  slot.report.flush(0, slot.report.bytes());
  if (options_.ranks.sync_batch_norm) check_counts(program, slot);
}

/// A norm over all ranks takes the sums of its gradients for those of ranks that count alike. Every rank throws.
void RankExchange::check_counts(const run::Program& program, const run::Slot& slot) const {
  const step::StepProgram& lowered = program.lowered();
  const auto is_statistics = [](const auto& each) { return std::holds_alternative<step::ExchangedStatistics>(each); };
  if (std::ranges::none_of(lowered.reported, &step::ReportedValue::of_counted)) return;
  if (std::ranges::none_of(lowered.exchanged, is_statistics)) return;
  const auto count_of = [&](std::size_t i) {
    float count;
    std::memcpy(&count, slot.report.mapped() + lowered.reported.back().places[i], sizeof count);
    return count;
  };
  const std::size_t each = lowered.share.count;
  for (std::size_t i = each; i < lowered.reported.back().places.size(); ++i) {
    if (count_of(i) == count_of(i % each)) continue;
    fail(
        "trainer",
        fmt::format("expected as many labels that count on each rank with Ranks::sync_batch_norm, got {} on rank 0 and "
                    "{} on rank {}",
                    count_of(i % each), count_of(i), i / each),
        "leave sync_batch_norm out, or ignore as many labels on each");
  }
}

void RankExchange::compare_devices() {
  const vk::Capabilities& device = workspace_.runtime->context().capabilities();
  const std::string mine = fmt::format("{} {}", device.name, device.driver_info);
  const std::uint64_t hash = hash_of(std::as_bytes(std::span(mine)));
  const std::optional<Difference> found = first_difference(exchange_, {&hash, 1});
  if (!found) return;
  const std::string first = broadcast_text(exchange_, mine, 0);
  const std::string other = broadcast_text(exchange_, mine, found->rank);
  const bool compared = options_.ranks.exchange_gradients();
  mixed_ = compared;
  if (!options_.log) return;
  options_.log(fmt::format(
      "ranks: rank 0 computes on {}, rank {} on {}{}", first, found->rank, other,
      compared ? fmt::format("; their weights are compared after each of the first {} steps", first_steps) : ""));
}

bool RankExchange::comparison_is_due() const {
  const auto every = static_cast<std::uint64_t>(options_.ranks.compare_every);
  if (const auto local = static_cast<std::uint64_t>(options_.ranks.sync_every); local > 0) {
    return every > 0 && steps_ % local == 0 && steps_ / every > (steps_ - local) / every;
  }
  return (every > 0 && steps_ % every == 0) || (mixed_ && steps_ - first_ <= first_steps);
}

void RankExchange::start(std::uint64_t seed, std::uint64_t steps) {
  seed_ = seed;
  steps_ = steps;
  first_ = steps;
}

void RankExchange::count_step() {
  ++steps_;
  // Means in other last bits may call for another scale, and gradients of two scales must not be added up.
  if (mixed_ && workspace_.store->spec().weights.scaled) {
    workspace_.store->write_scales(of_first(workspace_.store->read_scales()));
  }
  if (follows_) take_weights_of_first();
  if (!comparison_is_due()) return;
  if (!mixed_ || follows_) return compare_weights();
  const std::optional<Difference> found = first_other_weights();
  if (!found) return;
  follows_ = true;
  if (options_.log) {
    options_.log(
        fmt::format("ranks: rank {} updates weights to other last bits than rank 0; from here on, every rank "
                    "takes the weights of rank 0 after each step",
                    found->rank));
  }
  take_weights_of_first();
}

/// Rank 0 stores its own too, so that copies in narrow types are rounded alike. Those that are rounded at random are
/// rank 0's as well.
void RankExchange::take_weights_of_first() {
  state::ParameterStore& store = *workspace_.store;
  const std::vector<state::KeptTensor> tensors = store.tensors();
  std::vector<std::vector<float>> values;
  for (const state::KeptTensor& tensor : tensors) values.push_back(of_first(store.read(tensor)));
  const std::vector<const state::ParameterEntry*> copied = store.copied_at_random();
  std::vector<std::vector<float>> copies;
  for (const state::ParameterEntry* entry : copied) copies.push_back(of_first(store.read_weight(*entry)));
  store.write(tensors, values);
  for (std::size_t i = 0; i < copied.size(); ++i) store.write_copy(*copied[i], copies[i]);
}

/// What rank 0 has of these.
std::vector<float> RankExchange::of_first(std::vector<float> values) const {
  exchange_.broadcast(std::as_writable_bytes(std::span(values)), 0);
  return values;
}

/// As first_difference(), of the tensors of the store that every rank has; of weights that only one updates, of what it
/// gave the others.
std::optional<Difference> RankExchange::first_other_weights() const {
  const state::ParameterStore& store = *workspace_.store;
  std::vector<std::uint64_t> hashes;
  for (const state::KeptTensor& tensor : store.tensors()) {
    const bool moment = tensor.kind == state::KeptTensor::Kind::moment;
    const bool shared_out = store.is_shared_out(tensor) || (moment && !options_.ranks.exchange_gradients());
    std::vector<float> values;
    if (!shared_out) values = store.read(tensor);
    if (shared_out && !moment) values = store.read_weight(*tensor.entry);
    hashes.push_back(hash_of(std::as_bytes(std::span(values))));
  }
  return first_difference(exchange_, hashes);
}

void RankExchange::compare_weights() const {
  const std::optional<Difference> found = first_other_weights();
  if (!found) return;
  fail(ErrorCode::numerics, "exchange",
       fmt::format("expected the same weights on all ranks, got another '{}' on rank {} than on rank 0",
                   workspace_.store->tensors()[found->place].name, found->rank));
}

void RankExchange::end_all(const Error& error) {
  if (error.code() == ErrorCode::device_lost) exchange_.abort(error.what(), 1);
}

}  // namespace halfstep::train
