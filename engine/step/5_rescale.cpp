#include "step/stages.h"

namespace halfstep::step {

void rescale(plan::ProgramBuilder& builder, plan::TensorId state, plan::TensorId schedule, std::uint32_t rates,
             plan::TensorId report, const Precision& precision, const Optimizer& optimizer) {
  struct Push {
    float growth;
    float backoff;
    std::uint32_t interval;
    float floor;
    float ceiling;
    std::uint32_t rates;
    float beta1;
    float beta2;
  };
  const BiasCorrection correction = optimizer->bias_correction().value_or(BiasCorrection{});
  const LossScale& scale = precision.loss_scale;
  const bool dynamic = scale.kind == LossScale::Kind::dynamic;
  builder.dispatch(
      {.label = "rescale",
       .shader = "rescale",
       .constants = {1, dynamic},
       .push = plan::push_bytes(Push{scale.growth, scale.backoff, scale.interval, scale.floor, scale.ceiling, rates,
                                     correction.beta1, correction.beta2}),
       .operands = {{state, plan::Access::read_write}, {schedule, plan::Access::read}, {report, plan::Access::write}}});
}

}  // namespace halfstep::step
