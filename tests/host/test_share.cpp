#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "host/rank_of.h"
#include "step/share.h"

namespace halfstep {
namespace {

using Counts = std::vector<std::uint32_t>;

double slowest(const Counts& counts, const std::vector<double>& seconds) {
  double most = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) most = std::max(most, counts[i] * seconds[i]);
  return most;
}

/// The least that the slowest rank can take, by trying every division.
double least(std::uint32_t left, const std::vector<double>& seconds, Counts& counts) {
  const std::size_t next = counts.size();
  if (next + 1 == seconds.size()) {
    counts.push_back(left);
    const double result = slowest(counts, seconds);
    counts.pop_back();
    return result;
  }
  double best = 1e30;
  for (std::uint32_t count = 1; count + seconds.size() - next - 1 <= left; ++count) {
    counts.push_back(count);
    best = std::min(best, least(left - count, seconds, counts));
    counts.pop_back();
  }
  return best;
}

}  // namespace

TEST_CASE("micro-batches are divided so that the slowest rank is done as soon as possible") {
  CHECK(step::divided(4, std::vector{1.0, 3.0}) == Counts{3, 1});
  CHECK(step::divided(8, std::vector{1 / 3.0, 1.0}) == Counts{6, 2});
  CHECK(step::divided(2, std::vector{1.0, 100.0}) == Counts{1, 1});
  CHECK(step::divided(6, std::vector{1.0, 1.0, 1.0}) == Counts{2, 2, 2});
  std::mt19937 random(7);
  std::uniform_real_distribution<double> times(0.1, 5);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> seconds(2U + static_cast<unsigned>(round % 3));
    for (double& each : seconds) each = times(random);
    const auto micro_batches = static_cast<std::uint32_t>(seconds.size() + random() % 9);
    const Counts counts = step::divided(micro_batches, seconds);
    CHECK(std::accumulate(counts.begin(), counts.end(), 0U) == micro_batches);
    CHECK(*std::ranges::min_element(counts) >= 1);
    Counts tried;
    CHECK(slowest(counts, seconds) == least(micro_batches, seconds, tried));
  }
}

TEST_CASE("a rank's share follows those of the ranks before it") {
  const Counts counts{3, 1, 2};
  const step::Share share = step::share_of(counts, Ranks(std::make_shared<testing::RankOf>(1, 3)));
  CHECK(share.count == 1);
  CHECK(share.before == 3);
  CHECK(share.all == 6);
  CHECK(share.has(3));
  CHECK_FALSE(share.has(2));
  CHECK_FALSE(share.has(4));
  CHECK_FALSE(share.alone);
  CHECK(share.first_reported() == 3);
  CHECK(share.reported() == 6);
  CHECK(step::first_parts({.accumulate = 5}) == Counts{5});
}

}  // namespace halfstep
