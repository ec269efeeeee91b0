#include "train/rank_statistics.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace halfstep::train {
namespace {

/// Of every rank, one after the other.
std::vector<float> gathered(Exchange& exchange, std::span<const float> own) {
  std::vector<float> all(own.size() * static_cast<std::size_t>(exchange.size()));
  std::ranges::copy(own, all.begin() + std::ssize(own) * exchange.rank());
  exchange.begin_sum(all, {});  // exact: all terms but one are 0
  exchange.wait();
  return all;
}

/// As Chan, Golub and LeVeque 1979: nothing cancels however far means are from zero. Every host computes in double, in
/// the order of ranks.
void merge_moments(std::span<const float> all, double rows, std::span<float> moments) {
  const std::size_t channels = moments.size() / 2;
  const auto ranks = static_cast<double>(all.size() / moments.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double mean = 0;
    for (std::size_t i = channel; i < all.size(); i += moments.size()) mean += static_cast<double>(all[i]) / ranks;
    double squares = 0;
    for (std::size_t i = channel; i < all.size(); i += moments.size()) {
      const double difference = static_cast<double>(all[i]) - mean;
      squares += static_cast<double>(all[i + channels]) + rows * difference * difference;
    }
    moments[channel] = static_cast<float>(mean);
    moments[channels + channel] = static_cast<float>(squares);
  }
}

}  // namespace

void exchange_statistics(Exchange& exchange, const step::ExchangedStatistics& what, std::span<float> values) {
  if (what.kind == plan::OverRanks::moments) {
    return merge_moments(gathered(exchange, values), static_cast<double>(what.rows), values);
  }
  exchange.begin_sum(values, {});
  exchange.wait();
  for (float& value : values) value /= static_cast<float>(exchange.size());
}

}  // namespace halfstep::train
