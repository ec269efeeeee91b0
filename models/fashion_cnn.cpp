#include "models/fashion_cnn.h"

#include "models/layers.h"

namespace halfstep::models {

Tensor fashion_cnn(const Scope& scope, Tensor images, std::int64_t classes) {
  Tensor x = max_pool2d(relu(same_conv(scope / "conv1", images, 32, 3)));
  x = max_pool2d(relu(same_conv(scope / "conv2", x, 64, 3)));
  x = relu(dense(scope / "dense1", flatten(x), 128, Before::relu));
  return dense(scope / "dense2", x, classes);
}

}  // namespace halfstep::models
