#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>

#include "graph/ir.h"
#include "ops/apply.h"
#include "ops/conv/conv2d.h"
#include "ops/expect.h"

namespace halfstep {

// A transposed convolution is conv2d's gradient for images, so it uses the same operator.
Tensor conv2d_transpose(Tensor images, Tensor weight, Conv2dOptions options, Pair output_padding) {
  constexpr std::string_view op = "conv2d_transpose";
  ops::expect_rank(op, "images", images.type(), 4, "{n, h, w, in}");
  ops::expect_rank(op, "weight", weight.type(), 4, "{kh, kw, out / groups, in}");
  ops::expect_convolution(op, {images.dim(1), images.dim(2)}, {weight.dim(0), weight.dim(1)}, options);
  if (options.groups < 1 || images.dim(3) % options.groups != 0) {
    fail(op, fmt::format("expected groups that divide {} channels, got {}", images.dim(3), options.groups));
  }
  Shape result{images.dim(0), 0, 0, elements({weight.dim(2), options.groups})};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const std::int64_t limit = std::max(options.stride[i], options.dilation[i]);
    if (output_padding[i] < 0 || output_padding[i] >= limit) {
      fail(op, fmt::format("expected an output padding from 0 to below {}, the larger of stride and dilation, got {}",
                           limit, output_padding[i]));
    }
    result[i + 1] = (images.dim(axis + 1) - 1) * options.stride[i] - 2 * options.padding[i] +
                    options.dilation[i] * (weight.dim(axis) - 1) + output_padding[i] + 1;
    if (result[i + 1] < 1) {
      fail(op,
           fmt::format("expected images that leave something within the padding, got {}", to_string(images.type())));
    }
  }
  graph::check_extents(op, "the result", result);
  // A convolution of the result has a position more for each whole stride that pads it: there, images are 0.
  const Pair more{output_padding[0] / options.stride[0], output_padding[1] / options.stride[1]};
  if (more != Pair{0, 0}) images = pad(images, {0, 0, 0, 0}, {0, more[0], more[1], 0});
  return ops::conv2d_data_gradient(images, weight, std::move(result), options, "conv2d_transpose");
}

}  // namespace halfstep
