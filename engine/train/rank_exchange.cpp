#include "train/rank_exchange.h"

#include <halfstep/error.h>
#include <halfstep/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>
#include <variant>

#include "train/local_steps.h"
#include "train/rank_statistics.h"

namespace halfstep::train {
namespace {

namespace buffers = state::buffers;

/// After which the weights of ranks with different devices are compared.
constexpr std::uint64_t first_steps = 16;

/// The hash of Fowler, Noll and Vo (FNV-1a), of 64 bits.
std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  return hash;
}

std::uint64_t hash_of(const std::string& text) {
  return hash_of(std::as_bytes(std::span(text)));
}

/// What must be the same on every rank: its name, and what it is here, for a person and as a number.
struct Fact {
  std::string name;
  std::string text;
  std::uint64_t hash;
};

Fact fact(std::string name, std::string text) {
  const std::uint64_t hash = hash_of(text);
  return {std::move(name), std::move(text), hash};
}

std::string data_text(const TrainerOptions& options) {
  if (options.source != nullptr) return fmt::format("source '{}' of {}", options.source->name, options.source->count);
  if (options.training_set == nullptr) return "none";
  std::uint64_t hash = 0;
  for (const Field& field : options.training_set->all_fields()) hash = hash * 31 + hash_of(field.data);
  return fmt::format("'{}' of {} samples, checksum {:016x}", options.training_set->name, options.training_set->count,
                     hash);
}

std::string optimizers_text(const step::StepGraph& graph) {
  std::string text;
  for (const Optimizer& optimizer : graph.optimizers) {
    const std::vector<float>& rates = optimizer->rate().rates;
    text += fmt::format("{}{} at rate {}, schedule {:08x}", text.empty() ? "" : ", ", optimizer->name(), rates.front(),
                        static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(rates)))));
  }
  return text;
}

/// The numbers that optimizers compute with, and what else the update is made of.
Fact settings(const step::StepGraph& graph, const TrainerOptions& options) {
  std::vector<float> numbers{options.clip_norm, options.ema_decay, options.weight_limit,
                             options.decay_vectors ? 1.0F : 0.0F, options.precision.loss_scale.initial};
  for (const Optimizer& optimizer : graph.optimizers) {
    numbers.push_back(optimizer->weight_decay());
    if (optimizer->in_operators()) continue;
    std::ranges::copy(optimizer->kernel({}).numbers, std::back_inserter(numbers));
  }
  for (const state::Training& training : graph.training) {
    for (const float number : {training.rate, training.weight_decay, training.frozen ? 1.0F : 0.0F}) {
      numbers.push_back(number);
    }
  }
  const std::uint64_t hash = hash_of(std::as_bytes(std::span(numbers)));
  return {"setting of optimizer, clipping, averages and loss scale", fmt::format("those of checksum {:016x}", hash),
          hash};
}

std::string balance_text(const Balance& balance) {
  if (balance.measured) return fmt::format("one by measured times every {} steps", balance.every);
  return balance.shares.empty() ? "equal parts" : fmt::format("{}", fmt::join(balance.shares, ":"));
}

std::vector<Fact> facts(const Graph& graph, const step::StepGraph& lowered, const TrainerOptions& options) {
  const std::string model = to_string(graph);
  return {fact("version", std::string(version())),
          fact("model", fmt::format("'{}', checksum {:016x}", options.model, hash_of(model))),
          fact("precision", options.precision.name),
          fact("optimizer", optimizers_text(lowered)),
          settings(lowered, options),
          fact("seed", fmt::format("{}", options.seed)),
          fact("number of micro-batches", fmt::format("{}", options.accumulate)),
          fact("gradient exchange",
               fmt::format("{} in buckets of {}", name(options.ranks.wire), options.ranks.bucket_bytes)),
          fact("sharing of the optimizer's state", options.ranks.shard_state ? "shard_state" : "none"),
          fact("synchronisation of weights",
               fmt::format("every {} steps at rate {} and momentum {}", options.ranks.sync_every,
                           options.ranks.outer_rate, options.ranks.outer_momentum)),
          fact("statistics of batch norm", options.ranks.sync_batch_norm ? "those of all ranks" : "each rank's own"),
          fact("division of micro-batches", balance_text(options.ranks.balance)),
          fact("training set", data_text(options))};
}

/// Of a mapped buffer, from byte `offset` on.
std::span<float> floats_of(const vk::Buffer& buffer, std::uint64_t offset, std::uint64_t count) {
  return {reinterpret_cast<float*>(buffer.mapped() + offset), count};  // NOLINT
}

/// Gives every rank the text of `root`.
std::string broadcast_text(Exchange& exchange, std::string text, int root) {
  std::uint64_t size = text.size();
  exchange.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  text.resize(size);
  exchange.broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

}  // namespace

void check_ranks(const TrainerOptions& options) {
  const Ranks& ranks = options.ranks;
  if (!is_floating(ranks.wire)) {
    fail("trainer", fmt::format("expected gradients to travel in a floating type, got {}", name(ranks.wire)));
  }
  if (ranks.compare_every < 0 || ranks.bucket_bytes < 1) {
    fail("trainer", fmt::format("expected compare_every from 0 on and bucket_bytes from 1 on, got {} and {}",
                                ranks.compare_every, ranks.bucket_bytes));
  }
  check_local_steps(options);
  check_balance(options);
  const bool divided = ranks.balance.measured || !ranks.balance.shares.empty();
  if (ranks.sync_batch_norm && (divided || ranks.sync_every > 0)) {
    fail("trainer",
         fmt::format("expected equal parts of ranks that exchange every step with Ranks::sync_batch_norm, got {}",
                     divided ? "a Balance" : "sync_every"),
         "each micro-batch of a rank is normalised with one of every other rank");
  }
  if (divided && ranks.sync_every > 0) fail("trainer", "expected equal parts of ranks with sync_every, got a Balance");
  if (ranks.size() == 1) return;
  const auto refuse = [](const char* what, const char* why) {
    fail("trainer", fmt::format("expected one rank with {}, got several", what), why);
  };
  if (options.precision.stop_on.any()) refuse("Precision::stop_on", "a rank sees its own tensors only");
  if (options.snapshot_every > 0) {
    refuse("snapshots", "a rank that loses its device ends all; go on from a checkpoint");
  }
}

void check_shared_state(const step::StepGraph& graph, const TrainerOptions& options) {
  if (!options.ranks.share_state()) return;
  const auto refuse = [](const std::string& what, const char* why) {
    fail("trainer", fmt::format("expected shard_state without {}, got both", what), why);
  };
  if (options.ema_decay > 0) refuse("ema_decay", "averages need every rank's masters");
  for (const state::Training& training : graph.training) {
    const Optimizer& optimizer = graph.optimizers[training.optimizer];
    if (training.frozen || !optimizer->in_operators()) continue;
    refuse(optimizer->name(), "its operators take whole tensors, of which a rank has a part");
  }
}

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
  const WireFormat format{options_.ranks.wire, options_.ranks.rounding, seed_ ^ (steps_ << 20)};
  if (shard_) {
    shard_->begin_sum(values, bucket.first, format);
  } else {
    exchange_.begin_sum(values, format);
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
}

/// For each rank in `found`, 1 more than the place of the first number that differs from rank 0's, or 0. Returns the
/// first rank that differs, or 0.
std::uint32_t RankExchange::first_difference(std::span<const std::uint64_t> mine, std::vector<float>& found) const {
  std::vector<std::uint64_t> theirs(mine.begin(), mine.end());
  exchange_.broadcast(std::as_writable_bytes(std::span(theirs)), 0);
  found.assign(static_cast<std::size_t>(exchange_.size()), 0);
  for (std::size_t i = mine.size(); i-- > 0;) {
    if (mine[i] != theirs[i]) found[static_cast<std::size_t>(exchange_.rank())] = static_cast<float>(i + 1);
  }
  exchange_.begin_sum(found, {});
  exchange_.wait();
  for (std::uint32_t rank = 0; rank < found.size(); ++rank) {
    if (found[rank] > 0) return rank;
  }
  return 0;
}

void RankExchange::check_agreement(const Graph& graph, const step::StepGraph& lowered) {
  const std::vector<Fact> mine = facts(graph, lowered, options_);
  std::vector<std::uint64_t> hashes;
  for (const Fact& known : mine) hashes.push_back(known.hash);
  std::vector<float> found;
  const std::uint32_t rank = first_difference(hashes, found);
  if (rank == 0) return compare_devices();
  const Fact& different = mine[static_cast<std::size_t>(found[rank]) - 1];
  const std::string wanted = broadcast_text(exchange_, different.text, 0);
  const std::string got = broadcast_text(exchange_, different.text, static_cast<int>(rank));
  fail("exchange", fmt::format("expected one {} on all ranks, got {} on rank 0 and {} on rank {}", different.name,
                               wanted, got, rank));
}

void RankExchange::compare_devices() {
  const vk::Capabilities& device = workspace_.runtime->context().capabilities();
  const std::string mine = fmt::format("{} {}", device.name, device.driver_info);
  const std::uint64_t hash = hash_of(mine);
  std::vector<float> found;
  const std::uint32_t rank = first_difference({&hash, 1}, found);
  mixed_ = rank > 0;
  if (!mixed_) return;
  const std::string first = broadcast_text(exchange_, mine, 0);
  const std::string other = broadcast_text(exchange_, mine, static_cast<int>(rank));
  const bool compared = options_.ranks.exchange_gradients();
  mixed_ = compared;
  if (!options_.log) return;
  options_.log(fmt::format(
      "ranks: rank 0 computes on {}, rank {} on {}{}", first, rank, other,
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
  if (follows_) take_weights_of_first();
  if (!comparison_is_due()) return;
  if (!mixed_ || follows_) return compare_weights();
  std::vector<float> found;
  const std::uint32_t rank = first_other_weights(found);
  if (rank == 0) return;
  follows_ = true;
  if (options_.log) {
    options_.log(
        fmt::format("ranks: rank {} updates weights to other last bits than rank 0; from here on, every rank "
                    "takes the weights of rank 0 after each step",
                    rank));
  }
  take_weights_of_first();
}

/// Rank 0 stores its own too, so that copies in narrow types are rounded alike.
void RankExchange::take_weights_of_first() {
  const std::vector<state::KeptTensor> tensors = workspace_.store->tensors();
  std::vector<std::vector<float>> values;
  for (const state::KeptTensor& tensor : tensors) {
    values.push_back(workspace_.store->read(tensor));
    exchange_.broadcast(std::as_writable_bytes(std::span(values.back())), 0);
  }
  workspace_.store->write(tensors, values);
}

/// As first_difference(), of the tensors of the store that every rank has; of weights that only one updates, of what it
/// gave the others.
std::uint32_t RankExchange::first_other_weights(std::vector<float>& found) const {
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
  return first_difference(hashes, found);
}

void RankExchange::compare_weights() const {
  std::vector<float> found;
  const std::uint32_t rank = first_other_weights(found);
  if (rank == 0) return;
  fail(ErrorCode::numerics, "exchange",
       fmt::format("expected the same weights on all ranks, got another '{}' on rank {} than on rank 0",
                   workspace_.store->tensors()[static_cast<std::size_t>(found[rank]) - 1].name, rank));
}

void RankExchange::end_all(const Error& error) {
  if (error.code() == ErrorCode::device_lost) exchange_.abort(error.what(), 1);
}

}  // namespace halfstep::train
