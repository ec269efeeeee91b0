#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/host_tensor.h"
#include "train/step_graph.h"

namespace halfstep::train {
namespace {

/// Whether the policy has any operator work in f16.
bool works_in_f16(const Precision& precision) {
  const Lists& lists = precision.lists;
  const auto is_f16 = [](Compute compute) { return compute == Compute::f16; };
  return std::ranges::any_of(std::array{lists.products, lists.pairs, lists.reductions, lists.norms, lists.others},
                             is_f16) ||
         std::ranges::any_of(precision.operators, [&](const auto& one) { return is_f16(one.second); }) ||
         std::ranges::any_of(precision.layers, [](const auto& layer) { return layer.second == DType::f16; });
}

void require(bool condition, std::string_view expected, std::string_view hint) {
  if (!condition) fail("precision", fmt::format("expected {}", expected), hint);
}

void check_floating(const Precision& precision) {
  const std::pair<std::string_view, DType> types[] = {{"weights", precision.weights},
                                                      {"parameters", precision.parameters},
                                                      {"moments", precision.moments},
                                                      {"partials of matmul", precision.partials.matmul},
                                                      {"partials of conv2d", precision.partials.conv2d}};
  for (const auto& [name, dtype] : types) {
    if (dtype == DType::u32) fail("precision", fmt::format("expected {} of f32 or f16, got u32", name));
  }
}

void check_scale(const LossScale& scale, const Optimizer& optimizer) {
  if (scale.in_rate && (scale.kind != LossScale::Kind::fixed || !optimizer->takes_scale_in_rate())) {
    fail(
        "precision",
        fmt::format("expected a fixed loss scale and an optimizer that takes it in its rate, got {} with {} loss scale",
                    optimizer->name(), scale.kind == LossScale::Kind::fixed ? "a fixed" : "another"),
        "Sgd takes it; momentum would mix gradients of different scales, and Adam divides the scale out by itself");
  }
  if (scale.kind == LossScale::Kind::none) {
    if (scale.initial != 1) {
      fail("precision", fmt::format("expected a loss scale of 1 with none, got {}", scale.initial));
    }
    return;
  }
  if (!(scale.initial > 0) || !std::isfinite(scale.initial)) {
    fail("precision", fmt::format("expected a positive, finite loss scale, got {}", scale.initial));
  }
  if (scale.kind == LossScale::Kind::fixed) return;
  const bool ordered = scale.floor > 0 && scale.floor <= scale.initial && scale.initial <= scale.ceiling;
  if (!ordered || !std::isfinite(scale.ceiling)) {
    fail("precision", fmt::format("expected 0 < floor <= initial <= ceiling, got {}, {}, {}", scale.floor,
                                  scale.initial, scale.ceiling));
  }
  if (!(scale.growth >= 1) || !(scale.backoff > 0 && scale.backoff < 1) || scale.interval < 1) {
    fail("precision", fmt::format("expected growth >= 1, 0 < backoff < 1 and interval >= 1, got {}, {}, {}",
                                  scale.growth, scale.backoff, scale.interval));
  }
}

/// What f16 makes of a hyperparameter, where that is not nearly the same.
void note(std::vector<std::string>& notes, std::string_view name, double value) {
  const double in_f16 = static_cast<double>(plan::float_from_half(plan::half_from_float(static_cast<float>(value))));
  if (std::abs(in_f16 - value) <= 0.1 * std::abs(value)) return;
  notes.push_back(fmt::format("{} {:.4g} would be {:.4g} in f16: used in f32, as {:.4g}", name, value, in_f16,
                              static_cast<double>(static_cast<float>(value))));
}

}  // namespace

void check_precision(const Precision& precision, const Optimizer& optimizer) {
  check_floating(precision);
  const bool narrow = precision.parameters == DType::f16;
  require(narrow || precision.weights == DType::f32, "parameters of f16 with weights of f16, got f32",
          "operators read the weights as they are kept");
  require(narrow || precision.moments == DType::f32, "parameters of f16 with moments of f16, got f32",
          "choose mixed or float16");
  const Roundings& rounding = precision.rounding;
  require(narrow || rounding.weights == Rounding::nearest, "weights in f16 with stochastic rounding of them, got f32",
          "f32 weights are updated without rounding to f16");
  require(precision.moments == DType::f16 || rounding.optimizer == Rounding::nearest,
          "moments of f16 with stochastic rounding of the optimizer's state, got f32", "set Precision::moments");
  const bool any = narrow || works_in_f16(precision);
  const bool stochastic = rounding.activations == Rounding::stochastic || rounding.gradients == Rounding::stochastic;
  require(any || !stochastic, "operators in f16 with stochastic rounding, got none", "choose another preset");
  require(any || precision.overflow == Overflow::infinity, "operators in f16 with saturation at 65504, got none",
          "f32 results go to infinity");
  const bool scaled = precision.gradient_scales == GradientScales::per_tensor;
  require(narrow || !scaled, "parameters of f16 with scales of gradients, got f32", "choose mixed or float16");
  require(precision.overflow == Overflow::infinity || !scaled,
          "overflow to infinity with scales of gradients, got saturation",
          "65504 is what says that a tensor's own scale is too high");
  const bool partials = precision.partials.matmul == DType::f16 || precision.partials.conv2d == DType::f16;
  require(any || !partials, "operators in f16 with f16 partials, got none", "f32 products keep their sums in f32");
  const bool searches = precision.loss_scale.kind == LossScale::Kind::dynamic;
  require(!precision.stop_on.any() || !searches, "a fixed loss scale or none with stop_on, got a dynamic one",
          "it finds its value by letting steps overflow");
  check_scale(precision.loss_scale, optimizer);
}

std::vector<std::string> hyperparameter_notes(const Precision& precision, const Optimizer& optimizer) {
  std::vector<std::string> notes;
  if (precision.parameters != DType::f16) return notes;
  const auto scale = static_cast<double>(precision.loss_scale.initial);
  const float rate = *std::ranges::max_element(optimizer->rate().rates);
  note(notes, "rate", static_cast<double>(rate));
  if (scale != 1) note(notes, fmt::format("rate / loss scale {}", scale), static_cast<double>(rate) / scale);
  note(notes, "weight_decay", static_cast<double>(optimizer->weight_decay()));
  for (const NamedNumber& number : optimizer->small_numbers()) note(notes, number.name, number.value);
  return notes;
}

}  // namespace halfstep::train
