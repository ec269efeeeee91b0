#include "models/lenet5.h"

#include "models/layers.h"

namespace halfstep::models {

Tensor lenet5(const Scope& scope, Tensor images, std::int64_t classes, std::optional<Initializer> dense_weights) {
  const auto dense_layer = [&](const char* name, Tensor x, std::int64_t units, Before before) {
    return dense_weights ? dense(scope / name, x, units, *dense_weights) : dense(scope / name, x, units, before);
  };
  const std::int64_t border = images.dim(1) == 28 ? 2 : 0;
  Tensor x = max_pool2d(relu(conv(scope / "conv1", images, 6, 5, {.padding = {border, border}})));
  x = max_pool2d(relu(conv(scope / "conv2", x, 16, 5)));
  x = relu(dense_layer("dense1", flatten(x), 120, Before::relu));
  x = relu(dense_layer("dense2", x, 84, Before::relu));
  return dense_layer("dense3", x, classes, Before::anything);
}

}  // namespace halfstep::models
