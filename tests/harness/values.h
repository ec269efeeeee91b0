#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

#include "reference/array.h"

namespace halfstep::testing {

/// Uniform on [low, high], the same for the same seed.
reference::Array uniform(Shape shape, std::uint64_t seed, double low = -1, double high = 1);

/// Different numbers in random order, evenly spread over [low, high]: no two are nearer than f16 can tell, for up to a
/// few thousand. For operators with kinks, such as a maximum.
reference::Array distinct(Shape shape, std::uint64_t seed, double low = -1, double high = 1);

/// Whole numbers from 0 up to but not including `end`.
reference::Array whole(Shape shape, std::uint64_t seed, std::uint32_t end);

/// The nearest values that `dtype` has.
reference::Array rounded(const reference::Array& array, DType dtype);

}  // namespace halfstep::testing
