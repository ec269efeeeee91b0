#pragma once

#include <halfstep/precision.h>

#include <utility>

namespace halfstep::testing {

/// A policy with a scale for each tensor's gradient, as the only scale; weights are rounded to nearest.
inline Precision scaled(Precision precision = Precision::mixed()) {
  precision.gradient_scales = GradientScales::per_tensor;
  precision.loss_scale = LossScale::none();
  precision.rounding.weights = Rounding::nearest;
  return precision;
}

/// The same without.
inline Precision unscaled(Precision precision = Precision::mixed()) {
  precision = scaled(std::move(precision));
  precision.gradient_scales = GradientScales::none;
  return precision;
}

}  // namespace halfstep::testing
