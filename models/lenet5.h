#pragma once

#include <halfstep/graph.h>

#include <optional>

namespace halfstep::models {

/// LeNet-5 (LeCun et al. 1998) with ReLU and max pooling: 5x5 convolutions of 6 and 16 channels without padding, then
/// dense layers of 120, 84 and `classes`. For images {n, 32, 32, c}, or {n, 28, 28, c}, which the first convolution
/// pads with two zeros on each side to 32. Dense weights are initialised by `dense`, or by the default of layers.h if
/// it is not given. Returns logits {n, classes}.
HALFSTEP_API Tensor lenet5(const Scope& scope, Tensor images, std::int64_t classes = 10,
                           std::optional<Initializer> dense = {});

}  // namespace halfstep::models
