#include "reference/pool2d.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace halfstep::reference {
namespace {

/// Calls visit(index of a pooled element, index of an image's element) for every element of every window, in the
/// window's order.
template <typename Visit>
Array for_each_in_window(const Array& images, const Pool2dOptions& options, double start, const Visit& visit) {
  const Pair stride = options.stride.value_or(options.kernel);
  Shape shape = images.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    shape[i + 1] = (shape[i + 1] + 2 * options.padding[i] - options.kernel[i]) / stride[i] + 1;
  }
  Array result(shape, start);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::vector<std::int64_t> at = position(shape, i);
    for (std::int64_t row = 0; row < options.kernel[0]; ++row) {
      for (std::int64_t column = 0; column < options.kernel[1]; ++column) {
        const std::int64_t y = at[1] * stride[0] - options.padding[0] + row;
        const std::int64_t x = at[2] * stride[1] - options.padding[1] + column;
        if (y < 0 || x < 0 || y >= images.shape[1] || x >= images.shape[2]) continue;
        visit(result.values[i], images.values[index_of(images.shape, std::vector{at[0], y, x, at[3]})], i);
      }
    }
  }
  return result;
}

}  // namespace

Array max_pool2d(const Array& images, const Pool2dOptions& options) {
  return for_each_in_window(images, options, -std::numeric_limits<double>::infinity(),
                            [](double& result, double value, std::size_t) { result = std::max(result, value); });
}

Array average_pool2d(const Array& images, const Pool2dOptions& options) {
  const double window = static_cast<double>(options.kernel[0] * options.kernel[1]);
  std::vector<double> inside;
  Array result = for_each_in_window(images, options, 0, [&](double& total, double value, std::size_t i) {
    total += value;
    inside.resize(std::max(inside.size(), i + 1));
    inside[i] += 1;
  });
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] /= options.count_padding ? window : inside[i];
  }
  return result;
}

namespace {

/// f(elements of a window) for each window of adaptive pooling.
template <typename F>
Array adaptive(const Array& images, const Pair& size, const F& f) {
  Array result({images.shape[0], size[0], size[1], images.shape[3]});
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::vector<std::int64_t> at = position(result.shape, i);
    const auto begin = [&](std::size_t axis) { return at[axis] * images.shape[axis] / size[axis - 1]; };
    const auto end = [&](std::size_t axis) {
      return ((at[axis] + 1) * images.shape[axis] + size[axis - 1] - 1) / size[axis - 1];
    };
    std::vector<double> window;
    for (std::int64_t y = begin(1); y < end(1); ++y) {
      for (std::int64_t x = begin(2); x < end(2); ++x) {
        window.push_back(images.values[index_of(images.shape, std::vector{at[0], y, x, at[3]})]);
      }
    }
    result.values[i] = f(window);
  }
  return result;
}

}  // namespace

Array adaptive_average_pool2d(const Array& images, const Pair& size) {
  return adaptive(images, size, [](const std::vector<double>& window) {
    return std::accumulate(window.begin(), window.end(), 0.0) / static_cast<double>(window.size());
  });
}

Array adaptive_max_pool2d(const Array& images, const Pair& size) {
  return adaptive(images, size, [](const std::vector<double>& window) { return *std::ranges::max_element(window); });
}

}  // namespace halfstep::reference
