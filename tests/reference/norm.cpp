#include "reference/norm.h"

#include <cmath>

namespace halfstep::reference {

ChannelStatistics channel_statistics(const Array& x, bool unbiased) {
  const auto channels = static_cast<std::size_t>(x.shape.back());
  const auto rows = static_cast<double>(x.values.size() / channels);
  const Shape shape{x.shape.back()};
  ChannelStatistics result{Array(shape), Array(shape)};
  for (std::size_t i = 0; i < x.values.size(); ++i) result.mean.values[i % channels] += x.values[i] / rows;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double difference = x.values[i] - result.mean.values[i % channels];
    result.variance.values[i % channels] += difference * difference / (unbiased ? rows - 1 : rows);
  }
  return result;
}

Array normalise(const Array& x, const ChannelStatistics& statistics, const Array& weight, const Array& bias,
                double epsilon) {
  Array result(x.shape);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t c = i % weight.values.size();
    const double stddev = std::sqrt(statistics.variance.values[c] + epsilon);
    result.values[i] = (x.values[i] - statistics.mean.values[c]) / stddev * weight.values[c] + bias.values[c];
  }
  return result;
}

Array batch_norm(const Array& x, const Array& weight, const Array& bias, double epsilon) {
  return normalise(x, channel_statistics(x), weight, bias, epsilon);
}

Array group_norm(const Array& x, std::int64_t groups, const Array& weight, const Array& bias, double epsilon) {
  const auto channels = static_cast<std::size_t>(x.shape.back());
  const std::size_t image = x.values.size() / x.extent(0);
  const std::size_t size = channels / static_cast<std::size_t>(groups);
  const auto group_at = [&](std::size_t i) {
    return i / image * static_cast<std::size_t>(groups) + i % channels / size;
  };
  const auto count = static_cast<double>(image / static_cast<std::size_t>(groups));
  std::vector<double> mean(x.extent(0) * static_cast<std::size_t>(groups));
  std::vector<double> variance(mean.size());
  for (std::size_t i = 0; i < x.values.size(); ++i) mean[group_at(i)] += x.values[i] / count;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    variance[group_at(i)] += std::pow(x.values[i] - mean[group_at(i)], 2) / count;
  }
  Array result(x.shape);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t group = group_at(i);
    result.values[i] =
        (x.values[i] - mean[group]) / std::sqrt(variance[group] + epsilon) * weight.values[i % channels] +
        bias.values[i % channels];
  }
  return result;
}

}  // namespace halfstep::reference
