#include "reference/elementwise.h"

#include <algorithm>

namespace halfstep::reference {
namespace {

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t missing = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    result[missing + i] = std::max(longer[missing + i], shorter[i]);
  }
  return result;
}

}  // namespace

Array map(const Array& x, const std::function<double(double)>& f) {
  Array result = x;
  std::ranges::transform(result.values, result.values.begin(), f);
  return result;
}

Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  Array result(broadcast(a.shape, b.shape));
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::vector<std::int64_t> at = position(result.shape, i);
    result.values[i] = f(a.values[index_of(a.shape, at)], b.values[index_of(b.shape, at)]);
  }
  return result;
}

}  // namespace halfstep::reference
