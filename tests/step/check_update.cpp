#include "step/check_update.h"

#include <doctest/doctest.h>

#include <cmath>

#include "train/small_training.h"

namespace halfstep::testing {

void check_update(const Optimizer& optimizer, const std::vector<float>& gradients, double expected) {
  CAPTURE(optimizer->name());
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::fixed(16);
    for (const DType moments : {DType::f32, DType::f16}) {
      if (moments == DType::f16 && precision.parameters == DType::f32) continue;
      CAPTURE(name(moments));
      precision.moments = moments;
      Pull pull(7, 2, optimizer, precision);
      for (const float gradient : gradients) pull.step(gradient);
      // Numbers about 2 are 2^-9 apart in f16; a step rounds a weight once, by less than that.
      const bool narrow = precision.weights == DType::f16 || moments == DType::f16;
      const double tolerance = narrow ? 0x1p-9 * static_cast<double>(gradients.size()) : 2e-5;
      for (const float w : pull.weights()) CHECK(std::abs(static_cast<double>(w) - expected) <= tolerance);
    }
  }
}

}  // namespace halfstep::testing
