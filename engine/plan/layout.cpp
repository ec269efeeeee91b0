#include "plan/layout.h"

namespace halfstep::plan {

Layout layout(const Shape& shape) {
  Layout result;
  if (!shape.empty()) {
    result.columns = shape.back();
    result.rows = elements({shape.begin(), shape.end() - 1});
  }
  result.pitch = (result.columns + 3) / 4 * 4;
  return result;
}

std::uint64_t byte_size(const TensorType& type) {
  return static_cast<std::uint64_t>(layout(type.shape).padded_elements() * bytes(type.dtype));
}

}  // namespace halfstep::plan
