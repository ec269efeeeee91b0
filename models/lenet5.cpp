#include "models/lenet5.h"

#include "models/layers.h"

namespace halfstep::models {

Tensor lenet5(const Scope& scope, Tensor images, std::int64_t classes) {
  const std::int64_t border = images.dim(1) == 28 ? 2 : 0;
  Tensor x = max_pool2d(relu(conv(scope / "conv1", images, 6, 5, {.padding = {border, border}})));
  x = max_pool2d(relu(conv(scope / "conv2", x, 16, 5)));
  x = relu(dense(scope / "dense1", flatten(x), 120, Before::relu));
  x = relu(dense(scope / "dense2", x, 84, Before::relu));
  return dense(scope / "dense3", x, classes);
}

}  // namespace halfstep::models
