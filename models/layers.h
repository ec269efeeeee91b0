#pragma once

#include <halfstep/encodings.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

/// The layers of the models: an operator with its parameters, named "weight" and "bias" in `scope`. In files their axes
/// have PyTorch's order.
namespace halfstep::models {

enum class Bias : bool { none, zero };

/// Images {n, h, w, c} convolved with `channels` square filters of extent `kernel`: {n, oh, ow, channels}. Weights
/// {kernel, kernel, c / groups, channels} are initialised by `he`.
HALFSTEP_API Tensor conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel,
                         Conv2dOptions options = {}, Bias bias = Bias::zero);

/// The same with zero padding that keeps the images' extents; `kernel` is odd.
HALFSTEP_API Tensor same_conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel,
                              Bias bias = Bias::zero);

/// What follows a dense layer: its weights are initialised by `he` before a ReLU, else by `glorot`.
enum class Before : bool { relu, anything };

/// x {..., in} times weights {in, units}, plus a bias {units}, initially zero: {..., units}.
HALFSTEP_API Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Before before = Before::anything);
/// The same with another initializer for the weights.
HALFSTEP_API Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Initializer weights);
/// The parameters of such a layer of `in` columns, as fused_mlp takes them.
HALFSTEP_API DenseLayer dense_layer(const Scope& scope, std::int64_t in, std::int64_t units,
                                    Before before = Before::anything);

/// halfstep::hash_grid of positions {n, d} with a "table", initially uniform on +-1e-4.
HALFSTEP_API Tensor hash_grid(const Scope& scope, Tensor positions, const HashGridOptions& options = {});

/// The first layers of a network.
enum class Stem : std::uint8_t {
  large,  ///< downsamples, for images of 64 and larger
  small,  ///< keeps the extents, for images of 32
};

/// Batch norm of x {n, ..., c}, with "weight" (initially 1), "bias" (initially 0), "running_mean" and "running_var".
HALFSTEP_API Tensor batch_norm(const Scope& scope, Tensor x, BatchNormOptions options = {});

}  // namespace halfstep::models
