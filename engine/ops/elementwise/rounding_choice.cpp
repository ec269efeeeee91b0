#include "ops/elementwise/rounding_choice.h"

#include <string>

#include "plan/lowering.h"

namespace halfstep::ops {
namespace {

/// shaders/tune/rounding_check.comp has as many.
constexpr std::uint32_t invocations = 1 << 16;
constexpr std::int64_t loop_rounds = 17;

void lower_check(plan::Lowering& out) {
  out.choose({.key = std::string(rounding_kind),
              .kind = std::string(rounding_kind),
              .candidates = {{.name = "driver"}},
              .rule_is_known = true,
              .flops = 0,
              .problem = {}});
  struct Push {
    std::uint32_t count;
  };
  const std::uint32_t local_size = plan::flat_local_size(out.target());
  out.dispatch({.label = {},
                .shader = "rounding_check",
                .constants = {local_size},
                .push = plan::push_bytes(Push{invocations}),
                .operands = {{out.output(0), plan::Access::write}},
                .groups = plan::groups_for(out.target(), invocations, local_size),
                .rounds = loop_rounds});
}

}  // namespace

std::vector<plan::Trial> rounding_checks() {
  plan::Trial trial;
  trial.output = {DType::f32, {invocations, 4}};
  trial.expected.assign(std::size_t{4} * invocations, 0.0F);
  trial.lower = lower_check;
  return {trial};
}

}  // namespace halfstep::ops
