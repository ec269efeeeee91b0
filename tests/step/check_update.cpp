#include "step/check_update.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "reference/narrow.h"
#include "train/small_training.h"

namespace halfstep::testing {

void check_update(const Optimizer& optimizer, const std::vector<float>& gradients, double expected) {
  CAPTURE(optimizer->name());
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(), Precision::bfloat16(),
                              Precision::bfloat16(DType::bf16)}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::fixed(16);
    for (const DType moments : std::set{DType::f32, precision.parameters}) {
      CAPTURE(name(moments));
      precision.moments = moments;
      Pull pull(7, 2, optimizer, precision);
      for (const float gradient : gradients) pull.step(gradient);
      // A step rounds a weight of about 2 once, by less than the distance to the next number.
      const bool narrow = is_narrow(precision.weights) || is_narrow(moments);
      const double distance = narrow ? 4 * reference::narrow(precision.parameters).unit() : 0;
      const double tolerance = narrow ? distance * static_cast<double>(gradients.size()) : 2e-5;
      for (const float w : pull.weights()) CHECK(std::abs(static_cast<double>(w) - expected) <= tolerance);
    }
  }
}

}  // namespace halfstep::testing
