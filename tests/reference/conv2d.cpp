#include "reference/conv2d.h"

namespace halfstep::reference {
namespace {

std::int64_t outputs(const Shape& images, const Shape& weight, const Conv2dOptions& options, std::size_t axis) {
  const std::int64_t reach = options.dilation[axis] * (weight[axis] - 1) + 1;
  return (images[axis + 1] + 2 * options.padding[axis] - reach) / options.stride[axis] + 1;
}

Shape output_shape(const Shape& images, const Shape& weight, const Conv2dOptions& options) {
  return {images[0], outputs(images, weight, options, 0), outputs(images, weight, options, 1), weight[3]};
}

/// Calls visit(index in images, index in weight, index in output) for every product that a convolution sums.
template <typename Visit>
void for_each_product(const Shape& images, const Shape& weight, const Conv2dOptions& options, const Visit& visit) {
  const Shape output = output_shape(images, weight, options);
  const std::int64_t out_channels = weight[3] / options.groups;
  const std::int64_t rows = elements(weight) / weight[3];
  for (std::int64_t y = 0; y < elements(output); ++y) {
    const std::vector<std::int64_t> at = position(output, static_cast<std::size_t>(y));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t tap = row / weight[2];
      const std::int64_t channel = at[3] / out_channels * weight[2] + row % weight[2];
      const std::int64_t h = at[1] * options.stride[0] + tap / weight[1] * options.dilation[0] - options.padding[0];
      const std::int64_t w = at[2] * options.stride[1] + tap % weight[1] * options.dilation[1] - options.padding[1];
      if (h < 0 || h >= images[1] || w < 0 || w >= images[2]) continue;
      const std::int64_t x = ((at[0] * images[1] + h) * images[2] + w) * images[3] + channel;
      visit(static_cast<std::size_t>(x), static_cast<std::size_t>(row * weight[3] + at[3]),
            static_cast<std::size_t>(y));
    }
  }
}

}  // namespace

Array conv2d(const Array& images, const Array& weight, const Conv2dOptions& options) {
  Array result(output_shape(images.shape, weight.shape, options));
  for_each_product(images.shape, weight.shape, options, [&](std::size_t x, std::size_t w, std::size_t y) {
    result.values[y] += images.values[x] * weight.values[w];
  });
  return result;
}

Array conv2d_data_gradient(const Array& cotangent, const Array& weight, const Shape& images,
                           const Conv2dOptions& options) {
  Array result(images);
  for_each_product(images, weight.shape, options, [&](std::size_t x, std::size_t w, std::size_t y) {
    result.values[x] += cotangent.values[y] * weight.values[w];
  });
  return result;
}

Array conv2d_weight_gradient(const Array& images, const Array& cotangent, const Shape& weight,
                             const Conv2dOptions& options) {
  Array result(weight);
  for_each_product(images.shape, weight, options, [&](std::size_t x, std::size_t w, std::size_t y) {
    result.values[w] += images.values[x] * cotangent.values[y];
  });
  return result;
}

}  // namespace halfstep::reference
