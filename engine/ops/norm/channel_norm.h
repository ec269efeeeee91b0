#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// How the normalisations see a tensor {..., c}: `sets` of `rows` pixels of c channels, each set with statistics of its
/// own. A batch is one set; for group and instance norm every image is one.
struct ChannelSets {
  std::int64_t sets = 1;
  std::int64_t rows = 1;
  std::int64_t channels = 1;

  /// The shape of `planes` numbers for every channel of every set.
  Shape shape(std::int64_t planes) const { return {sets, planes, channels}; }
};

/// Appends the dispatches that find the mean of every channel of every set, and the sum of the squares of what is left
/// when it is subtracted, in f32: {sets, 2, channels}. Slices are summed up apart and merged as Chan, Golub and
/// LeVeque 1979 have it, so that nothing cancels however far the mean lies from zero. Where the product
/// that computed x output those of slices as well (plan::ChannelMoments), they are only merged.
plan::TensorId lower_moments(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets);

/// Appends y = (x - mean) * inverse deviation * weight + bias. `statistics` {sets, 2, channels} holds mean and inverse
/// deviation.
void lower_channel_norm(plan::Lowering& out, plan::TensorId x, plan::TensorId statistics, plan::TensorId weight,
                        plan::TensorId bias, plan::TensorId y, const ChannelSets& sets);

/// Appends the sums of dy and of dy times the normalised x, for every channel of every set: {sets, 2, channels}.
plan::TensorId lower_gradient_sums(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                                   const ChannelSets& sets);

/// Appends the gradients of weight and bias: those sums, over all sets.
void lower_parameter_gradients(plan::Lowering& out, plan::TensorId sums, plan::TensorId weight_gradient,
                               plan::TensorId bias_gradient, const ChannelSets& sets);

/// What lower_norm_gradient takes off every element so that the result leaves mean and deviation alone.
enum class GradientMeans : std::uint8_t {
  sums,   ///< the gradient sums, which are multiplied by weight / rows: statistics of one channel each
  means,  ///< the means of weight dy and of weight dy times the normalised x over whatever shares statistics
};

/// Appends dx = inverse deviation * (weight dy - mean(weight dy) - normalised x * mean(weight dy * normalised x)), with
/// the means from `means` {sets, 2, channels}.
void lower_norm_gradient(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                         plan::TensorId weight, plan::TensorId means, GradientMeans kind, plan::TensorId dx,
                         const ChannelSets& sets);

}  // namespace halfstep::ops
