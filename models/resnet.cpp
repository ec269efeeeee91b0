#include "models/resnet.h"

#include <halfstep/error.h>

#include <array>
#include <string>

#include "models/layers.h"

namespace halfstep::models {
namespace {

struct Stages {
  std::array<int, 4> blocks;
  bool bottleneck;
};

Stages stages(std::int64_t depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, false};
    case 34:
      return {{3, 4, 6, 3}, false};
    case 50:
      return {{3, 4, 6, 3}, true};
    default:
      fail("resnet", "expected a depth of 18, 34 or 50, got " + std::to_string(depth));
  }
}

/// Batch norm of a convolution, padded so that only the stride changes the images' extents.
Tensor conv_norm(const Scope& conv_scope, const Scope& norm_scope, Tensor x, std::int64_t channels, std::int64_t kernel,
                 std::int64_t stride) {
  const std::int64_t border = kernel / 2;
  const Conv2dOptions options{.stride = {stride, stride}, .padding = {border, border}};
  return batch_norm(norm_scope, conv(conv_scope, x, channels, kernel, options, Bias::none));
}

/// Two 3x3 convolutions.
Tensor basic(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride) {
  const Tensor y = relu(conv_norm(scope / "conv1", scope / "bn1", x, channels, 3, stride));
  return conv_norm(scope / "conv2", scope / "bn2", y, channels, 3, 1);
}

/// A bottleneck: a 3x3 convolution between two 1x1 convolutions; the result has four times `channels`.
Tensor bottleneck(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride) {
  Tensor y = relu(conv_norm(scope / "conv1", scope / "bn1", x, channels, 1, 1));
  y = relu(conv_norm(scope / "conv2", scope / "bn2", y, channels, 3, stride));
  return conv_norm(scope / "conv3", scope / "bn3", y, 4 * channels, 1, 1);
}

Tensor block(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride, bool deep) {
  const Tensor y = deep ? bottleneck(scope, x, channels, stride) : basic(scope, x, channels, stride);
  if (y.shape() == x.shape()) return relu(add(y, x));
  const Scope past = scope / "downsample";
  return relu(add(y, conv_norm(past / "0", past / "1", x, y.dim(-1), 1, stride)));
}

}  // namespace

Tensor resnet(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes, Stem stem) {
  const Stages shape = stages(depth);
  const bool large = stem == Stem::large;
  Tensor x = relu(conv_norm(scope / "conv1", scope / "bn1", images, 64, large ? 7 : 3, large ? 2 : 1));
  if (large) x = max_pool2d(x, {.kernel = {3, 3}, .stride = Pair{2, 2}, .padding = {1, 1}});
  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    const Scope layer = scope / ("layer" + std::to_string(stage + 1));
    for (int i = 0; i < shape.blocks[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(layer / std::to_string(i), x, std::int64_t{64} << stage, stride, shape.bottleneck);
    }
  }
  return dense(scope / "fc", global_average_pool(x), classes);
}

}  // namespace halfstep::models
