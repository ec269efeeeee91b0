#include "harness/values.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "reference/narrow.h"

namespace halfstep::testing {

reference::Array uniform(Shape shape, std::uint64_t seed, double low, double high) {
  reference::Array result(std::move(shape));
  std::mt19937_64 random(seed);
  for (double& value : result.values) value = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  return result;
}

reference::Array distinct(Shape shape, std::uint64_t seed, double low, double high) {
  reference::Array result(std::move(shape));
  const double spacing = (high - low) / static_cast<double>(result.values.size());
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = low + spacing * (static_cast<double>(i) + 0.5);
  std::ranges::shuffle(result.values, std::mt19937_64(seed));
  return result;
}

reference::Array whole(Shape shape, std::uint64_t seed, std::uint32_t end) {
  reference::Array result(std::move(shape));
  std::mt19937_64 random(seed);
  for (double& value : result.values) value = static_cast<double>(random() % end);
  return result;
}

reference::Array rounded(const reference::Array& array, DType dtype) {
  reference::Array result = array;
  for (double& value : result.values) {
    if (is_narrow(dtype)) value = reference::narrow(dtype).rounded(value);
    if (dtype == DType::f32) value = static_cast<double>(static_cast<float>(value));
  }
  return result;
}

}  // namespace halfstep::testing
