#pragma once

#include <string_view>
#include <vector>

#include "plan/choice.h"

namespace halfstep::ops {

/// The kind of a choice that is made for a device: whether its conversion to f16 takes the place of Halfstep's own, as
/// the candidate "driver".
inline constexpr std::string_view rounding_kind = "rounding to f16";

/// That the driver's conversion gives the same bits for four million numbers: all halfway between two of f16 and the
/// numbers beside them, for every exponent from subnormal f16 to infinity, and others.
std::vector<plan::Trial> rounding_checks();

}  // namespace halfstep::ops
