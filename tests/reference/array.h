#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace halfstep::reference {

/// A row-major tensor of doubles: the input and output type of the references.
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

/// The position along each axis of row-major index `index`.
std::vector<std::int64_t> position(const Shape& shape, std::size_t index);

/// The index of a position along each axis. Axes on which `shape` has extent 1, or which it lacks (aligned at the last
/// axis), are ignored, so `position` may be in a shape that it broadcasts to.
std::size_t index_of(const Shape& shape, std::span<const std::int64_t> position);

}  // namespace halfstep::reference
