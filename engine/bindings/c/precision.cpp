#include <halfstep/precision.h>

#include "c/handles.h"

namespace halfstep::c {
namespace {

void set(DType& type, hs_dtype given) {
  if (given != HS_DTYPE_DEFAULT) type = dtype_of(given);
}

Compute compute_of(hs_dtype given) {
  return given == HS_WIDEST ? Compute(widest) : Compute(dtype_of(given));
}

void set(Compute& compute, hs_dtype given) {
  if (given != HS_DTYPE_DEFAULT) compute = compute_of(given);
}

void set(Rounding& rounding, hs_rounding given) {
  if (given == HS_ROUNDING_DEFAULT) return;
  if (given != HS_NEAREST && given != HS_STOCHASTIC) {
    fail("precision", "expected a value of hs_rounding, got " + std::to_string(static_cast<int>(given)));
  }
  rounding = given == HS_NEAREST ? Rounding::nearest : Rounding::stochastic;
}

void set(Overflow& overflow, hs_overflow given) {
  if (given == HS_OVERFLOW_DEFAULT) return;
  if (given != HS_INFINITY && given != HS_SATURATE) {
    fail("precision", "expected a value of hs_overflow, got " + std::to_string(static_cast<int>(given)));
  }
  overflow = given == HS_INFINITY ? Overflow::infinity : Overflow::saturate;
}

void set_kind(LossScale& scale, hs_loss_scale kind) {
  switch (kind) {
    case HS_SCALE_DEFAULT:
      return;
    case HS_SCALE_NONE:
      scale = LossScale::none();
      return;
    case HS_SCALE_FIXED:
      scale = LossScale::fixed(256);
      return;
    case HS_SCALE_DYNAMIC:
      scale = LossScale::dynamic();
      return;
  }
  fail("precision", "expected a value of hs_loss_scale, got " + std::to_string(static_cast<int>(kind)));
}

void set_scale(LossScale& scale, const hs_precision& given) {
  set_kind(scale, given.loss_scale);
  scale.initial = number_or(given.scale_initial, scale.initial);
  scale.growth = number_or(given.scale_growth, scale.growth);
  scale.backoff = number_or(given.scale_backoff, scale.backoff);
  scale.floor = number_or(given.scale_floor, scale.floor);
  scale.ceiling = number_or(given.scale_ceiling, scale.ceiling);
  scale.interval = number_or(given.scale_interval, scale.interval);
  scale.in_rate = chosen(given.scale_in_rate, scale.in_rate);
}

void set_types(Precision& precision, const hs_precision& given) {
  set(precision.weights, given.weights);
  set(precision.parameters, given.parameters);
  set(precision.moments, given.moments);
  set(precision.lists.products, given.products);
  set(precision.lists.pairs, given.pairs);
  set(precision.lists.reductions, given.reductions);
  set(precision.lists.norms, given.norms);
  set(precision.lists.others, given.others);
  set(precision.partials.matmul, given.partials_matmul);
  set(precision.partials.conv2d, given.partials_conv2d);
  for (const hs_dtype_of& entry : list(given.operators, given.operator_count, "operators")) {
    precision.operators[text(entry.name, "an operator's name")] = compute_of(entry.dtype);
  }
  for (const hs_dtype_of& entry : list(given.layers, given.layer_count, "layers")) {
    precision.layer(text(entry.name, "a pattern of layers"), dtype_of(entry.dtype));
  }
}

}  // namespace

Precision precision_of(const hs_precision* options) {
  const hs_precision given = read(options, "precision");
  Precision precision = Precision::level(text_or(given.preset, "mixed"));
  set_types(precision, given);
  precision.promote = chosen(given.promote, precision.promote);
  set(precision.rounding.weights, given.round_weights);
  set(precision.rounding.optimizer, given.round_optimizer);
  set(precision.rounding.activations, given.round_activations);
  set(precision.rounding.gradients, given.round_gradients);
  set(precision.overflow, given.overflow);
  const bool scales = chosen(given.gradient_scales, precision.gradient_scales != GradientScales::none);
  precision.gradient_scales = scales ? GradientScales::per_tensor : GradientScales::none;
  constexpr std::uint32_t known = HS_STOP_ON_OVERFLOW | HS_STOP_ON_INVALID | HS_STOP_ON_DIVISION_BY_ZERO;
  if ((given.stop_on & ~known) != 0) {
    fail("precision", "expected values of hs_stop_on, got " + std::to_string(given.stop_on));
  }
  if (given.stop_on != 0) {
    precision.stop_on = {(given.stop_on & HS_STOP_ON_OVERFLOW) != 0, (given.stop_on & HS_STOP_ON_INVALID) != 0,
                         (given.stop_on & HS_STOP_ON_DIVISION_BY_ZERO) != 0};
  }
  set_scale(precision.loss_scale, given);
  precision.float8_linear = chosen(given.float8_linear, precision.float8_linear);
  precision.reproducible = chosen(given.reproducible, precision.reproducible);
  return precision;
}

}  // namespace halfstep::c
