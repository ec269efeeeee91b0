#pragma once

#include <halfstep/graph.h>

#include "models/layers.h"

namespace halfstep::models {

/// The residual networks of He et al. 2016 for large images {n, h, w, c}, as torchvision builds them (the stride of a
/// bottleneck on its 3x3 convolution), with its names of parameters: the stem, four stages of
/// blocks with 64 to 512 channels (256 to 2048 for depth 50), the mean of each channel and a dense layer "fc". `depth`
/// is 18, 34 or 50. The large stem is a 7x7 convolution and 3x3 max pooling, each with stride 2, the small one a 3x3
/// convolution. Returns logits {n, classes}. Throws Error for any other depth.
HALFSTEP_API Tensor resnet(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes = 1000,
                           Stem stem = Stem::large);

}  // namespace halfstep::models
