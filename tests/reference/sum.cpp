#include "reference/sum.h"

#include <algorithm>
#include <numeric>

namespace halfstep::reference {

Array sum(const Array& x, std::vector<std::int64_t> axes, bool keep) {
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  if (axes.empty()) {
    axes.resize(x.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  Shape kept = x.shape;
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  Array result(kept);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    result.values[index_of(kept, position(x.shape, i))] += x.values[i];
  }
  if (keep) return result;
  result.shape.clear();
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::count(axes, axis) == 0) result.shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  }
  return result;
}

Array mean(const Array& x, const std::vector<std::int64_t>& axes, bool keep) {
  Array result = sum(x, axes, keep);
  const double terms = static_cast<double>(x.values.size()) / static_cast<double>(result.values.size());
  for (double& value : result.values) value /= terms;
  return result;
}

}  // namespace halfstep::reference
