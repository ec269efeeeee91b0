#pragma once

#include "reference/array.h"

namespace halfstep::reference {

/// Mean and variance of each channel of x {..., c}: {c} each. The variance is the population variance, or with
/// `unbiased` the unbiased estimate.
struct ChannelStatistics {
  Array mean;
  Array variance;
};
ChannelStatistics channel_statistics(const Array& x, bool unbiased = false);

/// (x - mean) / sqrt(variance + epsilon) * weight + bias.
Array normalise(const Array& x, const ChannelStatistics& statistics, const Array& weight, const Array& bias,
                double epsilon);

/// With the statistics of x itself.
Array batch_norm(const Array& x, const Array& weight, const Array& bias, double epsilon);

/// Each image of x {n, ..., c} normalised by the mean and variance of each group of channels.
Array group_norm(const Array& x, std::int64_t groups, const Array& weight, const Array& bias, double epsilon);

}  // namespace halfstep::reference
