#include "ops/pool2d.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <limits>

#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

std::string to_string(const Pair& pair) {
  return fmt::format("{{{}, {}}}", pair[0], pair[1]);
}

std::array<std::int32_t, 2> narrow(const plan::Lowering& out, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (height > most || width > most)
    fail(out.label(), fmt::format("expected sizes below 2^31, got {} x {}", height, width));
  return {static_cast<std::int32_t>(height), static_cast<std::int32_t>(width)};
}

}  // namespace

Pool2d checked_pool(std::string_view op, const Pool2dOptions& options) {
  constexpr std::int64_t most = 1 << 15;
  const Pool2d pool{options.kernel, options.stride.value_or(options.kernel), options.padding, options.count_padding};
  for (std::size_t i = 0; i < 2; ++i) {
    if (pool.kernel[i] < 1 || pool.kernel[i] > most) {
      fail(op, fmt::format("expected a kernel of 1 to {}, got {}", most, to_string(pool.kernel)));
    }
    if (pool.stride[i] < 1 || pool.stride[i] > most) {
      fail(op, fmt::format("expected strides of 1 to {}, got {}", most, to_string(pool.stride)));
    }
    if (pool.padding[i] < 0 || pool.padding[i] > pool.kernel[i] / 2) {
      fail(op, fmt::format("expected padding from 0 to half the kernel {}, got {}", to_string(pool.kernel),
                           to_string(pool.padding)));
    }
  }
  return pool;
}

Shape pooled_shape(std::string_view op, const Pool2d& pool, const TensorType& images) {
  expect_float(op, "images", images);
  expect_rank(op, "images", images, 4, "{n, h, w, c}");
  Shape result = images.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t room = images.shape[i + 1] + 2 * pool.padding[i] - pool.kernel[i];
    if (room < 0) {
      fail(op, fmt::format("expected images that a window of {} fits into, got {}", to_string(pool.kernel),
                           to_string(images)));
    }
    result[i + 1] = room / pool.stride[i] + 1;
  }
  return result;
}

Pool2dPush pool_push(const plan::Lowering& out, const Pool2d& pool, const Shape& input, const Shape& output,
                     const Shape& written) {
  const plan::Layout lay = plan::layout(written);
  return {index32(out, lay.quads()),
          index32(out, lay.quads_per_row()),
          narrow(out, input[1], input[2]),
          narrow(out, output[1], output[2]),
          narrow(out, pool.kernel[0], pool.kernel[1]),
          narrow(out, pool.stride[0], pool.stride[1]),
          narrow(out, pool.padding[0], pool.padding[1])};
}

}  // namespace halfstep::ops
