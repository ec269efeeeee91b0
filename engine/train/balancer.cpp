#include "train/balancer.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace halfstep::train {
namespace {

/// Steps until ranks are compared for the first time, and those of a recording that are not measured: what they use is
/// not in caches yet.
constexpr std::int64_t first_look = 6;
constexpr std::int64_t warm_up = 2;

/// Parts change where that shortens a step to so much of what it is: recording anew takes longer than many steps.
constexpr double worthwhile = 0.9;

/// What the slowest rank takes.
double slowest(std::span<const std::uint32_t> counts, std::span<const double> seconds) {
  double most = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) most = std::max(most, counts[i] * seconds[i]);
  return most;
}

void refuse(const std::string& expected, const std::string& got, const std::string& hint = {}) {
  fail("trainer", fmt::format("expected {}, got {}", expected, got), hint);
}

}  // namespace

void check_balance(const TrainerOptions& options) {
  const auto& [shares, measured, every] = options.ranks.balance;
  if (every <= warm_up) refuse(fmt::format("Balance::every from {} on", warm_up + 1), fmt::format("{}", every));
  if (!measured && shares.empty()) return;
  if (measured && !shares.empty()) refuse("shares of ranks or measured ones", "both");
  if (!measured && shares.size() != static_cast<std::size_t>(options.ranks.size())) {
    refuse(fmt::format("a share for each of {} ranks", options.ranks.size()), fmt::format("{}", shares.size()));
  }
  for (const double share : shares) {
    if (!std::isnormal(share) || share < 0) refuse("positive shares of ranks", fmt::format("{}", share));
  }
  if (measured && options.precision.reproducible) {
    refuse("equal or given parts of ranks with Precision::reproducible", "measured ones",
           "measured times differ from run to run, and with them the order of sums");
  }
  const bool has_epochs = options.training_set != nullptr || (options.source != nullptr && options.source->count > 0);
  if (has_epochs) return;
  refuse("equal parts of ranks where steps are given values, or have a source without a count", "a Balance",
         "each rank draws its part of an epoch");
}

Balancer::Balancer(const TrainerOptions& options)
    : options_(options),
      measures_(options.ranks.balance.measured && options.ranks.size() > 1 && options.accumulate > 1),
      counts_(step::first_parts(options)) {
  look_again_in(first_look);
  if (!options.ranks.balance.shares.empty()) tell("");
  if (options.ranks.balance.measured && !measures_) tell(", as a step has one for each rank");
}

step::Share Balancer::largest_share() const {
  step::Share largest = share();
  if (measures_) largest.count = largest.all - static_cast<std::uint32_t>(counts_.size()) + 1;
  largest.before = std::min(largest.before, largest.all - largest.count);
  return largest;
}

void Balancer::note(double seconds) {
  --left_;
  if (skipped_ > 0) {
    --skipped_;
  } else {
    least_ = std::min(least_, seconds);
  }
}

bool Balancer::begin_step() {
  const bool changes = measures_ && left_ == 0 && compare();
  begin_ = Clock::now();
  return changes;
}

bool Balancer::compare() {
  const std::vector<double> seconds = seconds_of_ranks();
  std::vector<std::uint32_t> wanted = step::divided(share().all, seconds);
  // Hosts that differ may divide differently.
  options_.ranks.exchange->broadcast(std::as_writable_bytes(std::span(wanted)), 0);
  look_again_in(options_.ranks.balance.every);
  bool changes = slowest(wanted, seconds) <= worthwhile * slowest(counts_, seconds);
  options_.ranks.exchange->broadcast(std::as_writable_bytes(std::span(&changes, 1)), 0);
  if (!changes) return false;
  counts_ = std::move(wanted);
  std::vector<std::string> each;
  for (const double of_rank : seconds) each.push_back(fmt::format("{:.1f}", 1000 * of_rank));
  tell(fmt::format(", which take {} ms each", fmt::join(each, ":")));
  return true;
}

/// What each rank takes for a micro-batch.
std::vector<double> Balancer::seconds_of_ranks() const {
  std::vector<float> seconds(counts_.size());
  seconds[static_cast<std::size_t>(options_.ranks.rank())] = static_cast<float>(least_ / share().count);
  options_.ranks.exchange->begin_sum(seconds, {});
  options_.ranks.exchange->wait();
  return {seconds.begin(), seconds.end()};
}

void Balancer::look_again_in(std::int64_t steps) {
  left_ = steps;
  skipped_ = warm_up;
  least_ = std::numeric_limits<double>::infinity();
}

void Balancer::tell(const std::string& why) const {
  if (options_.log) options_.log(fmt::format("ranks: micro-batches {}{}", fmt::join(counts_, ":"), why));
}

}  // namespace halfstep::train
