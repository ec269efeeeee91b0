#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// Two 3x3 convolutions of `channels` channels, with a ReLU between them and no biases, then one dense layer: for
/// images {n, 28, 28, 1} and the defaults, 260,394 parameters. Returns logits {n, classes}.
HALFSTEP_API Tensor fashion_conv(const Scope& scope, Tensor images, std::int64_t classes = 10,
                                 std::int64_t channels = 32);

}  // namespace halfstep::models
