#pragma once

#include <halfstep/graph.h>

#include <optional>

namespace halfstep::models {

/// LeNet-5 (LeCun et al. 1998) with ReLU and max pooling: convolutions of 6 and 16 channels, 5x5 without a border, then
/// dense layers of 120, 84 and `classes`. For images {n, 32, 32, c}, or {n, 28, 28, c}, whose first convolution then
/// has the border of two zeros that 32 would have brought. Dense weights start as `dense`, or as layers.h has it where
/// there is none. Returns logits {n, classes}.
HALFSTEP_API Tensor lenet5(const Scope& scope, Tensor images, std::int64_t classes = 10,
                           std::optional<Initializer> dense = {});

}  // namespace halfstep::models
