#include "models/fashion_conv.h"

#include "models/layers.h"

namespace halfstep::models {

Tensor fashion_conv(const Scope& scope, Tensor images, std::int64_t classes, std::int64_t channels) {
  Tensor x = relu(same_conv(scope / "conv1", images, channels, 3, Bias::none));
  x = same_conv(scope / "conv2", x, channels, 3, Bias::none);
  return dense(scope / "dense", flatten(x), classes);
}

}  // namespace halfstep::models
