#include "models/layers.h"

#include <algorithm>

namespace halfstep::models {
namespace {

DenseLayer layer_of(const Scope& scope, std::int64_t in, std::int64_t units, Initializer weights) {
  const Tensor weight = scope.parameter("weight", {in, units}, weights, {1, 0});
  return {weight, scope.parameter("bias", {units}, constant(0))};
}

}  // namespace

Tensor conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel, Conv2dOptions options,
            Bias bias) {
  // conv2d rejects fewer than one group, with its own error message.
  const std::int64_t in = images.dim(-1) / std::max<std::int64_t>(options.groups, 1);
  const Tensor weight =
      scope.parameter("weight", {kernel, kernel, in, channels}, he(kernel * kernel * in), {3, 2, 0, 1});
  if (bias == Bias::none) return conv2d(images, weight, options);
  return conv2d(images, weight, options, scope.parameter("bias", {channels}, constant(0)));
}

Tensor same_conv(const Scope& scope, Tensor images, std::int64_t channels, std::int64_t kernel, Bias bias) {
  const std::int64_t border = kernel / 2;
  return conv(scope, images, channels, kernel, {.padding = {border, border}}, bias);
}

Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Before before) {
  const DenseLayer layer = dense_layer(scope, x.dim(-1), units, before);
  return linear(x, layer.weight, layer.bias);
}

Tensor dense(const Scope& scope, Tensor x, std::int64_t units, Initializer weights) {
  const DenseLayer layer = layer_of(scope, x.dim(-1), units, weights);
  return linear(x, layer.weight, layer.bias);
}

DenseLayer dense_layer(const Scope& scope, std::int64_t in, std::int64_t units, Before before) {
  return layer_of(scope, in, units, before == Before::relu ? he(in) : glorot(in, units));
}

Tensor batch_norm(const Scope& scope, Tensor x, BatchNormOptions options) {
  const Shape channels{x.dim(-1)};
  const Tensor weight = scope.parameter("weight", channels, constant(1));
  const Tensor bias = scope.parameter("bias", channels, constant(0));
  const RunningStatistics running{scope.state("running_mean", channels, constant(0)),
                                  scope.state("running_var", channels, constant(1))};
  return halfstep::batch_norm(x, weight, bias, running, options);
}

Tensor hash_grid(const Scope& scope, Tensor positions, const HashGridOptions& options) {
  const std::int64_t size = hash_grid_size(positions.dim(-1), options);
  return halfstep::hash_grid(positions, scope.parameter("table", {size}, uniform(-1e-4F, 1e-4F)), options);
}

}  // namespace halfstep::models
