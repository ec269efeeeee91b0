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
/// nothing cancels however far the mean is from zero. If the GEMM that computed x also
/// output the moments of slices (plan::ChannelMoments), they are only merged.
plan::TensorId lower_moments(plan::Lowering& out, plan::TensorId x, const ChannelSets& sets);

/// Appends y = (x - mean) * inverse std * weight + bias. `statistics` {sets, 2, channels} holds mean and inverse std.
void lower_channel_norm(plan::Lowering& out, plan::TensorId x, plan::TensorId statistics, plan::TensorId weight,
                        plan::TensorId bias, plan::TensorId y, const ChannelSets& sets);

/// Appends the sums of dy and of dy times the normalised x, per channel and set: {sets, 2, channels}.
plan::TensorId lower_gradient_sums(plan::Lowering& out, plan::TensorId x, plan::TensorId dy, plan::TensorId statistics,
                                   const ChannelSets& sets);

/// Appends the gradients of weight and bias: those sums, over all sets.
void lower_parameter_gradients(plan::Lowering& out, plan::TensorId sums, plan::TensorId weight_gradient,
                               plan::TensorId bias_gradient, const ChannelSets& sets);

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
