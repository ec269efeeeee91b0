#include "models/mobilenet_v2.h"

#include <halfstep/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace halfstep::models {
namespace {

/// A sequence of blocks: all have `channels`, the first has `stride`.
struct Stage {
  std::int64_t expansion;
  std::int64_t channels;
  int blocks;
  std::int64_t stride;
};

/// Table 2 of the paper.
constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                            {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/// channels * width rounded to the nearest multiple of 8, unless that reduces it by more than a tenth.
std::int64_t scaled(std::int64_t channels, double width) {
  const double wanted = static_cast<double>(channels) * width;
  const std::int64_t nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * wanted ? nearest + 8 : nearest;
}

/// Batch norm of a convolution without bias, padded so that only the stride changes the images' extents.
Tensor conv_norm(const Scope& conv_scope, const Scope& norm_scope, Tensor x, std::int64_t channels, std::int64_t kernel,
                 std::int64_t stride = 1, std::int64_t groups = 1) {
  const std::int64_t border = kernel / 2;
  const Conv2dOptions options{.stride = {stride, stride}, .padding = {border, border}, .groups = groups};
  return batch_norm(norm_scope, conv(conv_scope, x, channels, kernel, options, Bias::none));
}

Tensor conv_norm_relu6(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t kernel,
                       std::int64_t stride = 1, std::int64_t groups = 1) {
  return relu6(conv_norm(scope / "0", scope / "1", x, channels, kernel, stride, groups));
}

/// An inverted residual block: a 1x1 convolution that expands the channels, a depthwise one, and a 1x1 convolution that
/// reduces them, without activation.
Tensor block(const Scope& scope, Tensor x, std::int64_t channels, std::int64_t stride, std::int64_t expansion) {
  const Scope layers = scope / "conv";
  int next = 0;
  const auto layer = [&] { return layers / std::to_string(next++); };
  const std::int64_t hidden = x.dim(-1) * expansion;
  Tensor y = x;
  if (expansion != 1) y = conv_norm_relu6(layer(), y, hidden, 1);
  y = conv_norm_relu6(layer(), y, hidden, 3, stride, hidden);
  const Scope last = layer();
  y = conv_norm(last, layer(), y, channels, 1);
  // By the stride, as in torchvision: one of 2 keeps the extents of an image of a single pixel.
  return stride == 1 && y.shape() == x.shape() ? add(x, y) : y;
}

}  // namespace

Tensor mobilenet_v2(const Scope& scope, Tensor images, std::int64_t classes, const MobileNetOptions& options) {
  const double width = options.width;
  if (!(width >= 0.1 && width <= 10)) {
    std::array<char, 32> text{};  // without the locale's decimal separator, which std::to_string has
    const std::to_chars_result end = std::to_chars(text.begin(), text.end(), width);
    fail("mobilenet_v2", "expected a width from 0.1 to 10, got " + std::string(text.begin(), end.ptr));
  }
  const Scope features = scope / "features";
  int next = 0;
  const auto layer = [&] { return features / std::to_string(next++); };
  // The strides of the first two layers with stride 2; all later ones keep theirs.
  std::int64_t early = options.stem == Stem::small ? 1 : 2;
  Tensor x = conv_norm_relu6(layer(), images, scaled(32, width), 3, early);
  for (const Stage& stage : stages) {
    for (int i = 0; i < stage.blocks; ++i) {
      const bool shrinks = i == 0 && stage.stride == 2;
      const std::int64_t stride = shrinks ? std::exchange(early, 2) : 1;
      x = block(layer(), x, scaled(stage.channels, width), stride, stage.expansion);
    }
  }
  x = conv_norm_relu6(layer(), x, scaled(1280, std::max(1.0, width)), 1);
  x = dropout(global_average_pool(x), options.dropout);
  return dense(scope / "classifier" / "1", x, classes, normal(0.01F));
}

}  // namespace halfstep::models
