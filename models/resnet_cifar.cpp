#include "models/resnet_cifar.h"

#include <halfstep/error.h>

#include <string>

#include "models/layers.h"

namespace halfstep::models {
namespace {

Tensor conv3x3(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride) {
  return conv(scope, x, channels, 3, {.stride = {stride, stride}, .padding = {1, 1}}, Bias::none);
}

/// x converted to the extents and channels of a block's result.
Tensor past(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride, Shortcut shortcut) {
  if (stride == 1 && x.dim(-1) == channels) return x;
  if (shortcut == Shortcut::projection) {
    const Tensor projected = conv(scope / "0", x, channels, 1, {.stride = {stride, stride}}, Bias::none);
    return batch_norm(scope / "1", projected);
  }
  const std::int64_t more = channels - x.dim(-1);
  const Tensor every_second = slice(x, {0, 0, 0, 0}, x.shape(), {1, stride, stride, 1});
  return pad(every_second, {0, 0, 0, more / 2}, {0, 0, 0, more - more / 2});
}

Tensor block(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride, Shortcut shortcut) {
  Tensor y = relu(batch_norm(scope / "bn1", conv3x3(scope / "conv1", x, channels, stride)));
  y = batch_norm(scope / "bn2", conv3x3(scope / "conv2", y, channels, 1));
  return relu(add(y, past(scope / "downsample", x, channels, stride, shortcut)));
}

}  // namespace

Tensor resnet_cifar(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes, Shortcut shortcut) {
  if (depth < 8 || depth > deepest_resnet_cifar || depth % 6 != 2) {
    fail("resnet_cifar", "expected a depth of 6N + 2 (8, 14, 20, 26, ...) up to " +
                             std::to_string(deepest_resnet_cifar) + ", got " + std::to_string(depth));
  }
  const std::int64_t blocks = (depth - 2) / 6;
  Tensor x = relu(batch_norm(scope / "bn1", conv3x3(scope / "conv1", images, 16, 1)));
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    const Scope layer = scope / ("layer" + std::to_string(stage + 1));
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(layer / std::to_string(i), x, 16 << stage, stride, shortcut);
    }
  }
  return dense(scope / "fc", global_average_pool(x), classes);
}

}  // namespace halfstep::models
