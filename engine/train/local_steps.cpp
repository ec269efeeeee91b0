#include "train/local_steps.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "graph/dtype.h"
#include "train/checkpoint_reader.h"
#include "train/metadata_keys.h"
#include "train/rank_agreement.h"
#include "train/stored_values.h"
#include "vk/command/transfer.h"

namespace halfstep::train {
namespace {

namespace buffers = state::buffers;
using Kind = state::KeptTensor::Kind;

constexpr std::string_view momentum_prefix = "halfstep.outer.momentum.";
constexpr std::string_view weight_prefix = "halfstep.outer.weight.";

std::string prefix_of(int rank) {
  return fmt::format("halfstep.rank{}.", rank);
}

/// The ranks that wrote a file; 1 if it does not say.
int ranks_of(const io::SafetensorsFile& file) {
  const auto found = file.metadata().find(keys::ranks);
  int ranks = 1;
  if (found == file.metadata().end()) return ranks;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  return error == std::errc() && end == text.data() + text.size() ? std::max(ranks, 1) : 1;
}

/// To at most `most` in magnitude; 0: any. NaN stays.
float limited(float value, float most) {
  return most > 0 && std::abs(value) > most ? std::copysign(most, value) : value;
}

/// Where a program finds weights and states.
constexpr std::array<plan::BufferId, 4> read_buffers{buffers::weights, buffers::masters, buffers::states,
                                                     buffers::next_states};

}  // namespace

void check_local_steps(const TrainerOptions& options) {
  const Ranks& ranks = options.ranks;
  const auto in_range = [](float value, float end) { return std::isfinite(value) && value >= 0 && value < end; };
  if (ranks.sync_every < 0 || !in_range(ranks.outer_rate, 1e6F) || !in_range(ranks.outer_momentum, 1)) {
    fail("trainer", fmt::format("expected sync_every and outer_rate from 0 on and outer_momentum in [0, 1), got {}, {} "
                                "and {}",
                                ranks.sync_every, ranks.outer_rate, ranks.outer_momentum));
  }
  if (ranks.size() == 1 || ranks.sync_every == 0) return;
  const auto refuse = [](const char* what, const char* why) {
    fail("trainer", fmt::format("expected sync_every without {}, got both", what), why);
  };
  if (ranks.shard_state) refuse("shard_state", "every rank updates all of its own weights");
  if (options.ema_decay > 0) refuse("ema_decay", "each rank would average weights of its own");
}

LocalSteps::LocalSteps(const run::Workspace& workspace, const TrainerOptions& options)
    : workspace_(workspace), options_(options), exchange_(*options.ranks.exchange) {
  for (const state::KeptTensor& tensor : workspace.store->tensors()) {
    if (!is_own(tensor) || tensor.kind == Kind::moment) continue;
    Synchronised& made = all_.emplace_back(Synchronised{tensor, {}, {}});
    made.values.resize(static_cast<std::size_t>(elements(tensor.entry->type.shape)));
    if (tensor.kind == Kind::weight) made.momentum.resize(made.values.size());
  }
}

/// Whether ranks have different values of a tensor between two synchronisations.
bool LocalSteps::is_own(const state::KeptTensor& tensor) const {
  return tensor.kind == Kind::state || !tensor.entry->training.frozen;
}

void LocalSteps::start(std::uint64_t seed, std::uint64_t steps) {
  for (Synchronised& each : all_) {
    each.values = workspace_.store->read(each.tensor);
    std::ranges::fill(each.momentum, 0.0F);
  }
  seed_ = seed;
  steps_ = steps;
  moved_ = false;
}

void LocalSteps::set(const state::KeptTensor& tensor) {
  for (Synchronised& each : all_) {
    if (each.tensor.kind == tensor.kind && each.tensor.name == tensor.name) {
      each.values = workspace_.store->read(each.tensor);
    }
  }
}

void LocalSteps::count_step() {
  ++steps_;
  moved_ = true;
  if (steps_ % static_cast<std::uint64_t>(options_.ranks.sync_every) == 0) synchronise();
}

/// What training has taken off a weight since the last synchronisation. Of a state, its values, then for each whether
/// it is another than at the last synchronisation: those that no rank has changed stay as they are, to the bit.
std::vector<float> LocalSteps::moved_by(const Synchronised& of) const {
  std::vector<float> values = workspace_.store->read(of.tensor);
  if (of.tensor.kind == Kind::state) {
    const std::size_t count = values.size();
    values.resize(2 * count);
    for (std::size_t i = 0; i < count; ++i) values[count + i] = values[i] == of.values[i] ? 0 : 1;
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {  // from what the store has kept of them
    values[i] = graph::stored(of.tensor.dtype, of.values[i], options_.precision.overflow) - values[i];
  }
  return values;
}

/// Every rank computes the same: by fma, which no compiler makes other operations of.
void LocalSteps::synchronise() {
  if (!moved_) return;
  const Ranks& ranks = options_.ranks;
  std::vector<std::vector<float>> moved;
  for (const Synchronised& each : all_) moved.push_back(moved_by(each));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const bool weight = all_[i].tensor.kind == Kind::weight;
    exchange_.begin_sum(moved[i], weight ? wire_format(ranks, seed_, steps_, i) : WireFormat{});
  }
  exchange_.wait();
  const auto count = static_cast<float>(ranks.size());
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Synchronised& each = all_[i];
    for (std::size_t j = 0; j < each.values.size(); ++j) {
      const float mean = moved[i][j] / count;
      if (each.momentum.empty()) {
        if (moved[i][each.values.size() + j] > 0) each.values[j] = mean;
        continue;
      }
      each.momentum[j] = std::fma(ranks.outer_momentum, each.momentum[j], mean);
      const float direction = std::fma(ranks.outer_momentum, each.momentum[j], mean);
      each.values[j] = limited(std::fma(-ranks.outer_rate, direction, each.values[j]), options_.weight_limit);
    }
  }
  write_synchronised();
  moved_ = false;
}

void LocalSteps::write_synchronised() {
  std::vector<state::KeptTensor> tensors;
  std::vector<std::vector<float>> values;
  for (const Synchronised& each : all_) {
    tensors.push_back(each.tensor);
    values.push_back(each.values);
  }
  workspace_.store->write(tensors, values);
}

void LocalSteps::with_synchronised(const std::function<void()>& call, After after) {
  if (!moved_) return call();
  for (std::size_t i = 0; i < own_.size(); ++i) {
    own_[i].resize(state::bytes_of(read_buffers[i], workspace_.store->spec()));
    if (!own_[i].empty()) vk::download(context(), workspace_.store->buffer(read_buffers[i]), 0, own_[i]);
  }
  own_is_aside_ = true;
  const auto try_to_put_back = [&] {
    try {
      put_back();
    } catch (const Error&) {
      return;  // the next call tries again
    }
  };
  try {
    write_synchronised();
    call();
  } catch (...) {
    try_to_put_back();
    throw;
  }
  if (after == After::put_back) return try_to_put_back();
  own_is_aside_ = false;
}

void LocalSteps::put_back() {
  if (!own_is_aside_) return;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    vk::upload(context(), workspace_.store->buffer(read_buffers[i]), 0, own_[i]);
  }
  own_is_aside_ = false;
}

vk::Context& LocalSteps::context() const {
  return workspace_.runtime->context();
}

Checkpoint::Contents LocalSteps::of_all_ranks(const Checkpoint::Contents& own) const {
  Checkpoint::Contents all = own;
  all.metadata[keys::ranks] = std::to_string(exchange_.size());
  const std::vector<state::KeptTensor> tensors = workspace_.store->tensors();
  const auto add = [&](std::string_view prefix, Checkpoint::Contents::Values values) -> std::vector<float>& {
    values.name = std::string(prefix) + values.name;
    return all.values.emplace_back(std::move(values)).values;
  };
  for (const Synchronised& each : all_) {
    const auto place = static_cast<std::size_t>(std::ranges::find(tensors, each.tensor.name, &state::KeptTensor::name) -
                                                tensors.begin());
    all.values[place].values = each.values;
    Checkpoint::Contents::Values outer = all.values[place];
    outer.dtype = DType::f32;
    if (is_narrow(each.tensor.dtype)) add(weight_prefix, outer);
    outer.values = each.momentum;
    if (each.tensor.kind == Kind::weight) add(momentum_prefix, outer);
  }
  for (int rank = 0; rank < exchange_.size(); ++rank) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool moment = tensors[i].kind == Kind::moment;
      if (!is_own(tensors[i]) || (!moment && !moved_)) continue;
      const bool plain = moment && rank == 0;
      std::vector<float>& values = plain ? all.values[i].values : add(prefix_of(rank), own.values[i]);
      exchange_.broadcast(std::as_writable_bytes(std::span(values)), rank);
    }
    for (std::size_t i = 0; i < own.raw.size(); ++i) {
      if (rank > 0) all.raw.push_back({prefix_of(rank) + own.raw[i].name, own.raw[i].dtype, own.raw[i].bytes});
      exchange_.broadcast(rank > 0 ? all.raw.back().bytes : all.raw[i].bytes, rank);
    }
  }
  for (const char* counted : {keys::applied, keys::loss_scale}) {
    std::string& text = all.metadata.at(counted);
    text = broadcast_text(exchange_, text, 0);
  }
  return all;
}

std::string LocalSteps::own_prefix(const io::SafetensorsFile& file, const Ranks& ranks) {
  return prefix_of(ranks.rank() % ranks_of(file));
}

std::vector<LocalSteps::Synchronised> LocalSteps::read(const io::SafetensorsFile& file, const std::string& name) const {
  std::vector<Synchronised> result = all_;
  for (Synchronised& each : result) {
    const std::string stored = stored_name(each.tensor.name);
    const auto take = [&](std::string_view prefix, std::vector<float>& values) {
      const std::string wanted = std::string(prefix) + stored;
      const bool found = file.find(wanted) != nullptr;
      if (found) values = take_present(file, name, wanted, *each.tensor.entry);
      return found;
    };
    if (!take(weight_prefix, each.values)) take("", each.values);
    if (!each.momentum.empty() && !take(momentum_prefix, each.momentum)) std::ranges::fill(each.momentum, 0.0F);
  }
  return result;
}

void LocalSteps::resume(std::vector<Synchronised> read, bool moved, std::uint64_t seed, std::uint64_t steps) {
  all_ = std::move(read);
  seed_ = seed;
  steps_ = steps;
  moved_ = moved;
  if (!moved_) write_synchronised();  // a file may have kept them wider than its weights
}

bool LocalSteps::has_own(const io::SafetensorsFile& file) const {
  return file.find(own_prefix(file, options_.ranks) + stored_name(all_.front().tensor.name)) != nullptr;
}

}  // namespace halfstep::train
