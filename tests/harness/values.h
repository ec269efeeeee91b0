#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

#include "reference/array.h"

namespace halfstep::testing {

/// Uniform on [low, high], the same for the same seed.
reference::Array uniform(Shape shape, std::uint64_t seed, double low = -1, double high = 1);

/// Distinct numbers in random order, evenly spaced over [low, high]. Up to a few thousand, f16 can distinguish them
/// all. For operators with kinks, such as a maximum.
reference::Array distinct(Shape shape, std::uint64_t seed, double low = -1, double high = 1);

/// Integers from 0 up to but not including `end`.
reference::Array whole(Shape shape, std::uint64_t seed, std::uint32_t end);

/// The values rounded to the nearest that `dtype` represents.
reference::Array rounded(const reference::Array& array, DType dtype);

}  // namespace halfstep::testing
