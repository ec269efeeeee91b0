#pragma once

#include <functional>

#include "reference/array.h"

namespace halfstep::reference {

/// f of every element.
Array map(const Array& x, const std::function<double(double)>& f);

/// f of the elements of a and b, with NumPy broadcasting.
Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f);

}  // namespace halfstep::reference
