#pragma once

#include <halfstep/graph.h>
#include <halfstep/ops.h>

/// What the models are put together from: an operator with its parameters, named "weight" and "bias" in `scope`. In
/// files their axes have PyTorch's order.
namespace halfstep::models {

enum class Bias : bool { none, zero };

/// Images {n, h, w, c} convolved with `channels` square kernels of extent `kernel`: {n, oh, ow, channels}.
/// Weights {kernel, kernel, c / groups, channels} start as `he`.
HALFSTEP_API Tensor conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel,
                         Conv2dOptions options = {}, Bias bias = Bias::zero);

/// The same with the border of zeros that keeps the images' extents; `kernel` is odd.
HALFSTEP_API Tensor same_conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel,
                              Bias bias = Bias::zero);

/// What follows a dense layer: its weights start as `he` before a ReLU, as `glorot` before anything else.
enum class Before : bool { relu, anything };

/// x {..., in} times weights {in, units}, plus a bias {units} that starts as zeros: {..., units}.
HALFSTEP_API Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Before before = Before::anything);
/// The same with weights that start otherwise.
HALFSTEP_API Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Initializer weights);

/// How a network begins.
enum class Stem : std::uint8_t {
  large,  ///< makes images of 64 and more small
  small,  ///< keeps images of 32 as they are
};

/// Batch norm of x {n, ..., c}, with "weight" (of ones), "bias" (of zeros), "running_mean" and "running_var".
HALFSTEP_API Tensor batch_norm(const Scope& scope, Tensor x, BatchNormOptions options = {});

}  // namespace halfstep::models
