#pragma once

#include <halfstep/graph.h>

#include "models/layers.h"

namespace halfstep::models {

struct MobileNetOptions {
  /// Multiplies the numbers of channels, which are then rounded to a multiple of 8: a double, as torchvision's, since
  /// the nearest f32 may lie on the other side of a tie.
  double width = 1;
  /// small: the first convolution and the first block of stride 2 use a stride of 1, so that images of 32 end as 4x4.
  Stem stem = Stem::large;
  float dropout = 0.2F;  ///< before the dense layer
};
/// MobileNetV2 (Sandler et al. 2018) for images {n, h, w, c}, with torchvision's structure and parameter names: a
/// convolution, 17 inverted residual blocks with depthwise convolutions, a 1x1 convolution to 1280 channels (more for a
/// width above 1), global average pooling and a dense layer. Returns logits {n, classes}. Throws Error unless the width
/// is from 0.1 to 10.
HALFSTEP_API Tensor mobilenet_v2(const Scope& scope, Tensor images, std::int64_t classes = 1000,
                                 const MobileNetOptions& options = {});

}  // namespace halfstep::models
