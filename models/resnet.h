#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// The residual networks of He et al. 2016 for large images {n, h, w, c}, as torchvision builds them (the stride of a
/// bottleneck on its 3x3 convolution), with its names of parameters: a 7x7 convolution and max pooling, four stages of
/// blocks with 64 to 512 channels (256 to 2048 for depth 50), the mean of each channel and a dense layer "fc". `depth`
/// is 18, 34 or 50. Returns logits {n, classes}. Throws Error for any other depth.
Tensor resnet(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes = 1000);

}  // namespace halfstep::models
