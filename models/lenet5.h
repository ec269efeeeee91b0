#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// LeNet-5 (LeCun et al. 1998) with ReLU and max pooling: convolutions of 6 and 16 channels, 5x5 without a border, then
/// dense layers of 120, 84 and `classes`. For images {n, 32, 32, c}, or {n, 28, 28, c}, whose first convolution then
/// has the border of two zeros that 32 would have brought. Returns logits {n, classes}.
Tensor lenet5(const Scope& scope, Tensor images, std::int64_t classes = 10);

}  // namespace halfstep::models
