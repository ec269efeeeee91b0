#pragma once

#include <halfstep/tensor.h>

#include <string>
#include <string_view>

#include "graph/ir.h"

namespace halfstep::ops {

/// A noise name that no operator of the graph has: those that draw noise have an attribute "noise".
std::string fresh_noise(const graph::Ir& ir);
/// `probability`; throws Error for `op` if it is not from 0 to below 1.
float checked_probability(std::string_view op, float probability);
/// halfstep::dropout() with noise of this name: equal names draw the same.
Tensor dropout(Tensor x, float probability, const std::string& noise);

/// The random words below this drop their element.
std::uint32_t dropped_below(float probability);

}  // namespace halfstep::ops
