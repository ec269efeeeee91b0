#include "reference/array.h"

namespace halfstep::reference {

std::vector<std::int64_t> position(const Shape& shape, std::size_t index) {
  std::vector<std::int64_t> result(shape.size());
  auto rest = static_cast<std::int64_t>(index);
  for (std::size_t i = shape.size(); i-- > 0;) {
    result[i] = rest % shape[i];
    rest /= shape[i];
  }
  return result;
}

std::size_t index_of(const Shape& shape, std::span<const std::int64_t> position) {
  const std::size_t missing = position.size() - shape.size();
  std::int64_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    index = index * shape[i] + (shape[i] == 1 ? 0 : position[missing + i]);
  }
  return static_cast<std::size_t>(index);
}

}  // namespace halfstep::reference
