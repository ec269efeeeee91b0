#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// Two blocks of a 3x3 convolution (32, then 64 channels), ReLU and 2x2 max pooling, then a dense layer of 128 and the
/// output layer. For images {n, h, w, c}; returns logits {n, classes}.
HALFSTEP_API Tensor fashion_cnn(const Scope& scope, Tensor images, std::int64_t classes = 10);

}  // namespace halfstep::models
