#include <halfstep/error.h>
#include <halfstep/tensor.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "graph/ir.h"

namespace halfstep {

std::string to_string(const Shape& shape) {
  return fmt::format("{{{}}}", fmt::join(shape, ", "));
}

std::int64_t elements(const Shape& shape) {
  const auto refuse = [&] {
    fail("tensor", fmt::format("expected extents from 0 on whose product is below 2^63, got {}", to_string(shape)));
  };
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) refuse();
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent > std::numeric_limits<std::int64_t>::max() / count) refuse();
    count *= extent;
  }
  return count;
}

std::string to_string(const TensorType& type) {
  return fmt::format("{} {}", name(type.dtype), to_string(type.shape));
}

const TensorType& Tensor::type() const {
  return graph::Access::ir(*this).values.at(id_).type;
}

const std::string& Tensor::name() const {
  return graph::Access::ir(*this).values.at(id_).name;
}

std::int64_t Tensor::dim(std::int64_t i) const {
  const std::int64_t axis = i < 0 ? i + rank() : i;
  if (axis < 0 || axis >= rank()) {
    fail(name(), fmt::format("expected an axis of {}, got {}", to_string(shape()), i));
  }
  return shape()[static_cast<std::size_t>(axis)];
}

}  // namespace halfstep
