#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace halfstep::reference {

/// A tensor of doubles in the order of its shape: what the references take and return.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape extents) : Array(std::move(extents), 0) {}
  Array(Shape extents, double value) : shape(std::move(extents)), values(count(shape), value) {}
  Array(Shape extents, std::vector<double> elements) : shape(std::move(extents)), values(std::move(elements)) {}

  static std::size_t count(const Shape& shape) { return static_cast<std::size_t>(elements(shape)); }
  std::size_t extent(std::size_t axis) const { return static_cast<std::size_t>(shape.at(axis)); }
};

/// A reference: an operator's result from its operands.
using Reference = std::function<Array(std::span<const Array>)>;

/// `index` in the order of `shape`, as a position along each axis.
std::vector<std::int64_t> position(const Shape& shape, std::size_t index);

/// The index of a position along each axis; an axis on which `shape` has extent 1 or which it lacks (they are aligned
/// at the last) is ignored, so that `position` may be one in a shape that it broadcasts to.
std::size_t index_of(const Shape& shape, std::span<const std::int64_t> position);

}  // namespace halfstep::reference
