#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// The shortcut of a block that reduces the image size and increases the number of channels: He et al. 2016, section
/// 3.3.
enum class Shortcut : std::uint8_t {
  identity,    ///< option A: every second pixel, with zero channels added on both sides
  projection,  ///< option B: a 1x1 convolution and batch norm
};

/// The deepest such network that was trained to a useful accuracy: He et al. 2016, section 4.2.
inline constexpr std::int64_t deepest_resnet_cifar = 1202;

/// The residual networks of He et al. 2016, section 4.2, for small images {n, h, w, c}: three stages of N blocks, of
/// two 3x3 convolutions each, with 16, 32 and 64 channels; then global average pooling and a dense layer. `depth` is 6N
/// + 2: 8, 14, 20, ... 1202. Returns logits {n, classes}. Throws Error for any other depth.
HALFSTEP_API Tensor resnet_cifar(const Scope& scope, Tensor images, std::int64_t depth, std::int64_t classes = 10,
                                 Shortcut shortcut = Shortcut::identity);

}  // namespace halfstep::models
