#include "reference/window.h"

namespace halfstep::reference {

Array slice(const Array& x, const Shape& begin, const Shape& end, const Shape& step) {
  Shape shape;
  for (std::size_t i = 0; i < begin.size(); ++i) shape.push_back((end[i] - begin[i] + step[i] - 1) / step[i]);
  Array result(shape);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    std::vector<std::int64_t> at = position(shape, i);
    for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] = begin[axis] + at[axis] * step[axis];
    result.values[i] = x.values[index_of(x.shape, at)];
  }
  return result;
}

Array pad(const Array& x, const Shape& before, const Shape& after) {
  Shape shape = x.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += before[i] + after[i];
  Array result(shape);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::vector<std::int64_t> at = position(x.shape, i);
    for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] += before[axis];
    result.values[index_of(shape, at)] = x.values[i];
  }
  return result;
}

Array concat(std::span<const Array> parts, std::size_t axis) {
  Shape shape = parts.front().shape;
  shape[axis] = 0;
  for (const Array& part : parts) shape[axis] += part.shape[axis];
  Array result(shape);
  std::int64_t offset = 0;
  for (const Array& part : parts) {
    for (std::size_t i = 0; i < part.values.size(); ++i) {
      std::vector<std::int64_t> at = position(part.shape, i);
      at[axis] += offset;
      const std::size_t place = index_of(shape, at);
      result.values[place] = part.values[i];
    }
    offset += part.shape[axis];
  }
  return result;
}

}  // namespace halfstep::reference
