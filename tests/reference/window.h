#pragma once

#include "reference/array.h"

namespace halfstep::reference {

Array slice(const Array& x, const Shape& begin, const Shape& end, const Shape& step);
Array pad(const Array& x, const Shape& before, const Shape& after);
Array concat(std::span<const Array> parts, std::size_t axis);

}  // namespace halfstep::reference
