#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// How the norms view a tensor {..., c}: `sets` of `rows` pixels of c channels, each set with its own statistics. For
/// batch norm the whole batch is one set; for group and instance norm every image is one.
struct ChannelSets {
  std::int64_t sets = 1;
  std::int64_t rows = 1;
  std::int64_t channels = 1;

  /// The shape of `planes` numbers per channel and set.
  Shape shape(std::int64_t planes) const { return {sets, planes, channels}; }
};

/// Appends the dispatches that compute, per channel and set, the mean and the sum of squared differences from it, in
/// f32: {sets, 2, channels}. Slices are summed separately and merged as in Chan, Golub and LeVeque 1979, so that
/// nothing cancels however far the mean is from zero. If the GEMM that computed x also output the moments of slices
/// (plan::ChannelMoments), they are only merged.
plan::TensorId lower_moments(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets);

/// The statistics of a batch, f32.
struct BatchStatistics {
  plan::TensorId running_mean;
  plan::TensorId running_variance;
  plan::TensorId used;  ///< {1, 2, channels}: mean and inverse std
  plan::TensorId next_mean;
  plan::TensorId next_variance;
  float epsilon;
  float momentum;
};

/// Appends the dispatches that compute the statistics of one set, over all ranks where these take them together.
void lower_batch_statistics(plan::Lowering& out, plan::TensorId x, const BatchStatistics& statistics,
                            const ChannelSets& sets);

/// Appends y = (x - mean) * inverse std * weight + bias. `statistics` {sets, 2, channels} holds mean and inverse std.
void lower_channel_norm(plan::Lowering& out, plan::TensorId x, plan::TensorId statistics, plan::TensorId weight,
                        plan::TensorId bias, plan::TensorId y, const ChannelSets& sets);

/// Appends the sums of dy and of dy times the normalised x, per channel, for slices of every set: {sets, slices, 2,
/// channels}.
plan::TensorId lower_gradient_sums(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                                   const ChannelSets& sets);

/// Those sums, over all slices of a set: {sets, 2, channels}.
plan::TensorId lower_set_sums(plan::Lowering& out, plan::TensorId sums, const ChannelSets& sets);

/// Those sums, over all slices and sets, {1, 2, channels}, which are also the gradients of bias and weight.
plan::TensorId lower_parameter_gradients(plan::Lowering& out, plan::TensorId sums, plan::TensorId weight_gradient,
                                         plan::TensorId bias_gradient);

/// The terms that lower_norm_gradient subtracts from every element.
enum class GradientMeans : std::uint8_t {
  sums,   ///< the gradient sums, which are multiplied by weight / rows: each channel has its own statistics
  means,  ///< the means of weight dy and of weight dy times the normalised x over the elements that share statistics
};

/// Appends dx = inverse std * (weight dy - mean(weight dy) - normalised x * mean(weight dy * normalised x)), with the
/// means from `means` {sets, 2, channels}.
void lower_norm_gradient(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                         plan::TensorId weight, plan::TensorId means, GradientMeans kind, plan::TensorId dx,
                         const ChannelSets& sets);

}  // namespace halfstep::ops
