#include "models/mlp.h"

#include <string>

#include "models/layers.h"

namespace halfstep::models {

Tensor mlp(const Scope& scope, Tensor x, std::span<const std::int64_t> hidden, std::int64_t classes) {
  x = flatten(x);
  int layer = 1;
  for (const std::int64_t width : hidden) {
    x = relu(dense(scope / ("dense" + std::to_string(layer++)), x, width, Before::relu));
  }
  return dense(scope / ("dense" + std::to_string(layer)), x, classes);
}

}  // namespace halfstep::models
