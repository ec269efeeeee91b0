#include "step/share.h"

#include <algorithm>

namespace halfstep::step {

Share share_of(std::span<const std::uint32_t> counts, const Ranks& ranks) {
  const auto rank = static_cast<std::size_t>(ranks.rank());
  Share share{.count = counts[rank],
              .all = 0,
              .rank = static_cast<std::uint32_t>(rank),
              .ranks = static_cast<std::uint32_t>(counts.size()),
              .alone = !ranks.exchange_gradients()};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i < rank) share.before += counts[i];
    share.all += counts[i];
  }
  return share;
}

std::vector<std::uint32_t> divided(std::uint32_t micro_batches, std::span<const double> seconds) {
  std::vector<std::uint32_t> counts(seconds.size(), 1);
  for (auto left = micro_batches - static_cast<std::uint32_t>(seconds.size()); left > 0; --left) {
    std::size_t next = 0;
    const auto done = [&](std::size_t rank) { return (counts[rank] + 1) * seconds[rank]; };
    for (std::size_t rank = 1; rank < counts.size(); ++rank) {
      if (done(rank) < done(next)) next = rank;
    }
    ++counts[next];
  }
  return counts;
}

std::vector<std::uint32_t> first_parts(const TrainerOptions& options) {
  const auto ranks = static_cast<std::size_t>(options.ranks.size());
  const auto each = static_cast<std::uint32_t>(options.accumulate);
  const std::vector<double>& shares = options.ranks.balance.shares;
  if (shares.empty()) return std::vector<std::uint32_t>(ranks, each);
  std::vector<double> seconds;
  for (const double share : shares) seconds.push_back(1 / share);
  return divided(each * static_cast<std::uint32_t>(ranks), seconds);
}

}  // namespace halfstep::step
