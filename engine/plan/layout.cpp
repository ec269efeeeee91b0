#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/beyond_limit.h"

namespace halfstep::plan {

Layout layout(const Shape& shape) {
  Layout result;
  if (!shape.empty()) {
    result.columns = shape.back();
    result.rows = elements({shape.begin(), shape.end() - 1});
  }
  constexpr std::int64_t most = std::int64_t{1} << 60;  // elements whose bytes can still be counted
  if (result.columns > most || result.rows > most / std::max<std::int64_t>(result.columns + 3, 4)) {
    fail_beyond_limit("tensor",
                      fmt::format("expected at most {} elements, padding included, got {}", most, to_string(shape)),
                      "a smaller batch makes smaller tensors");
  }
  result.pitch = (result.columns + 3) / 4 * 4;
  return result;
}

std::uint64_t byte_size(const TensorType& type) {
  return static_cast<std::uint64_t>(layout(type.shape).padded_elements() * bytes(type.dtype));
}

}  // namespace halfstep::plan
