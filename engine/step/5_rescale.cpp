#include "step/stages.h"

namespace halfstep::step {
namespace {

struct Betas {
  float first = 0;
  float second = 0;
};

Betas betas(const Sgd&) {
  return {};
}
Betas betas(const Adam& adam) {
  return {adam.beta1, adam.beta2};
}
Betas betas(const AdamW& adam) {
  return {adam.beta1, adam.beta2};
}

}  // namespace

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
  const Betas beta = std::visit([](const auto& kind) { return betas(kind); }, optimizer);
  const LossScale& scale = precision.loss_scale;
  const bool dynamic = scale.kind == LossScale::Kind::dynamic;
  builder.dispatch(
      {.label = "rescale",
       .shader = "rescale",
       .constants = {1, dynamic, precision.stop_on.any()},
       .push = plan::push_bytes(Push{scale.growth, scale.backoff, scale.interval, scale.floor, scale.ceiling, rates,
                                     beta.first, beta.second}),
       .operands = {{state, plan::Access::read_write}, {schedule, plan::Access::read}, {report, plan::Access::write}}});
}

}  // namespace halfstep::step
