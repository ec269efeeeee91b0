#pragma once

#include <halfstep/graph.h>

#include "models/layers.h"

namespace halfstep::models {

/// The residual networks of He et al. 2016 for large images {n, h, w, c}, with torchvision's structure (a bottleneck
/// has its stride on the 3x3 convolution) and parameter names: the stem, four stages of blocks with 64 to 512 channels
/// (256 to 2048 for depth 50), global average pooling and a dense layer "fc". `depth` is 18, 34 or 50. The large stem
/// is a 7x7 convolution and 3x3 max pooling, each with stride 2; the small one is a 3x3 convolution. Returns logits {n,
/// classes}. Throws Error for any other depth.
HALFSTEP_API Tensor resnet(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes = 1000,
                           Stem stem = Stem::large);

}  // namespace halfstep::models
