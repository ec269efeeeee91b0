#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/dtype.h"
#include "train/step_graph.h"

namespace halfstep::train {
namespace {

/// The types that the policy has operators work in, by list, name and layer.
std::vector<DType> working_types(const Precision& precision) {
  const Lists& lists = precision.lists;
  std::vector<DType> types{precision.parameters};
  const auto add = [&](Compute compute) {
    if (compute != widest) types.push_back(*compute);
  };
  for (const Compute list : {lists.products, lists.pairs, lists.reductions, lists.norms, lists.others}) add(list);
  for (const auto& [name, compute] : precision.operators) add(compute);
  for (const auto& [pattern, dtype] : precision.layers) add(dtype);
  return types;
}

void require(bool condition, std::string_view expected, std::string_view hint) {
  if (!condition) fail("precision", fmt::format("expected {}", expected), hint);
}

void check_floating(const Precision& precision) {
  const std::pair<std::string_view, DType> types[] = {
      {"weights", precision.weights}, {"parameters", precision.parameters}, {"moments", precision.moments}};
  for (const auto& [name, dtype] : types) {
    if (is_floating(dtype)) continue;
    fail("precision", fmt::format("expected {} of {}, got {}", name, graph::floating_names(), halfstep::name(dtype)));
  }
  for (const DType dtype : {precision.partials.matmul, precision.partials.conv2d}) {
    if (dtype == DType::f32 || dtype == DType::f16) continue;
    fail("precision", fmt::format("expected partials of f32 or f16, got {}", name(dtype)));
  }
  for (const DType dtype : working_types(precision)) {
    if (is_floating(dtype)) continue;
    fail("precision", fmt::format("expected operators in {}, got {}", graph::floating_names(), halfstep::name(dtype)));
  }
}

/// What a narrow type makes of a hyperparameter, where that is not nearly the same.
void note(std::vector<std::string>& notes, DType dtype, std::string_view name, double value) {
  const auto stored = static_cast<double>(graph::stored(dtype, static_cast<float>(value)));
  if (std::abs(stored - value) <= 0.1 * std::abs(value)) return;
  notes.push_back(fmt::format("{} {:.4g} would be {:.4g} in {}: used in f32, as {:.4g}", name, value, stored,
                              halfstep::name(dtype), static_cast<double>(static_cast<float>(value))));
}

/// f32, or what parameters are stored in.
void check_kept(const Precision& precision, std::string_view what, DType dtype, std::string_view hint) {
  if (dtype == DType::f32 || dtype == precision.parameters) return;
  const std::string_view read = name(precision.parameters);
  fail("precision",
       fmt::format("expected {} of {} with parameters of {}, got {}", what,
                   is_narrow(precision.parameters) ? fmt::format("f32 or {}", read) : "f32", read, name(dtype)),
       hint);
}

}  // namespace

bool is_loss_scale(float scale) {
  return scale >= 0x1p-125F && scale <= 0x1p125F;
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
  if (scale.kind == LossScale::Kind::fixed) {
    if (is_loss_scale(scale.initial)) return;
    fail("precision", fmt::format("expected a loss scale from 2^-125 to 2^125, got {}", scale.initial));
  }
  const bool ordered = scale.floor <= scale.initial && scale.initial <= scale.ceiling;
  if (!ordered || !is_loss_scale(scale.floor) || !is_loss_scale(scale.ceiling)) {
    fail("precision", fmt::format("expected 2^-125 <= floor <= initial <= ceiling <= 2^125, got {}, {}, {}",
                                  scale.floor, scale.initial, scale.ceiling));
  }
  if (!(scale.growth >= 1) || !(scale.backoff > 0 && scale.backoff < 1) || scale.interval < 1) {
    fail("precision", fmt::format("expected growth >= 1, 0 < backoff < 1 and interval >= 1, got {}, {}, {}",
                                  scale.growth, scale.backoff, scale.interval));
  }
}

void check_precision(const Precision& precision, const std::vector<Optimizer>& optimizers) {
  check_floating(precision);
  const std::string narrow = graph::narrow_names();
  const bool narrow_parameters = is_narrow(precision.parameters);
  check_kept(precision, "weights", precision.weights, "operators read the weights as they are kept, or a copy");
  check_kept(precision, "moments", precision.moments, "choose another preset");
  const Roundings& rounding = precision.rounding;
  require(narrow_parameters || rounding.weights == Rounding::nearest,
          fmt::format("weights in {} with stochastic rounding of them, got f32", narrow),
          "f32 weights are updated without rounding");
  require(is_narrow(precision.moments) || rounding.optimizer == Rounding::nearest,
          fmt::format("moments of {} with stochastic rounding of the optimizer's state, got f32", narrow),
          "set Precision::moments");
  const std::vector<DType> types = working_types(precision);
  const bool any = std::ranges::any_of(types, is_narrow);
  const bool stochastic = rounding.activations == Rounding::stochastic || rounding.gradients == Rounding::stochastic;
  require(any || !stochastic, fmt::format("operators in {} with stochastic rounding, got none", narrow),
          "choose another preset");
  require(any || precision.overflow == Overflow::infinity,
          fmt::format("operators in {} with saturation, got none", narrow), "f32 results go to infinity");
  const bool scaled = precision.gradient_scales == GradientScales::per_tensor;
  require(precision.parameters == DType::f16 || !scaled,
          fmt::format("parameters of f16 with scales of gradients, got {}", name(precision.parameters)),
          "choose mixed or float16");
  require(precision.overflow == Overflow::infinity || !scaled,
          "overflow to infinity with scales of gradients, got saturation",
          "65504 is what says that a tensor's own scale is too high");
  const bool partials = precision.partials.matmul == DType::f16 || precision.partials.conv2d == DType::f16;
  require(std::ranges::find(types, DType::f16) != types.end() || !partials,
          "operators in f16 with f16 partials, got none", "other products keep their sums in f32");
  require(std::ranges::find(types, DType::f16) != types.end() || !precision.float8_linear,
          "operators in f16 with float8_linear, got none", "choose float8");
  require(precision.partials.matmul == DType::f32 || !precision.float8_linear,
          "sums of products in f32 with float8_linear, got partials.matmul of f16", "its layers have no others");
  const bool searches = precision.loss_scale.kind == LossScale::Kind::dynamic;
  require(!precision.stop_on.any() || !searches, "a fixed loss scale or none with stop_on, got a dynamic one",
          "it finds its value by letting steps overflow");
  for (const Optimizer& optimizer : optimizers) check_scale(precision.loss_scale, optimizer);
}

namespace {

double highest_rate(const Optimizer& optimizer) {
  return static_cast<double>(*std::ranges::max_element(optimizer->rate().rates));
}

/// Notes on hyperparameters where parameters are kept in the policy's narrow type.
struct Notes {
  const Precision& precision;
  std::vector<std::string> lines{};

  void add(const std::string& name, double value) { note(lines, precision.parameters, name, value); }

  /// `prefix` says which optimizer.
  void add_optimizer(const Optimizer& optimizer, const std::string& prefix) {
    const auto scale = static_cast<double>(precision.loss_scale.initial);
    const double rate = highest_rate(optimizer);
    add(prefix + "rate", rate);
    if (scale != 1) add(fmt::format("{}rate / loss scale {}", prefix, scale), rate / scale);
    add(prefix + "weight_decay", static_cast<double>(optimizer->weight_decay()));
    for (const NamedNumber& number : optimizer->small_numbers()) add(prefix + number.name, number.value);
  }

  /// What it changes of the optimizer of its parameters.
  void add_group(const ParameterGroup& group, const Optimizer& optimizer) {
    if (group.frozen) return;
    const std::string prefix = fmt::format("'{}' ", group.pattern);
    if (group.rate != 1) add(prefix + "rate", static_cast<double>(group.rate) * highest_rate(optimizer));
    if (group.weight_decay) add(prefix + "weight_decay", static_cast<double>(*group.weight_decay));
  }
};

}  // namespace

std::vector<std::string> hyperparameter_notes(const TrainerOptions& options, const std::vector<Optimizer>& optimizers) {
  if (!is_narrow(options.precision.parameters)) return {};
  Notes notes{options.precision};
  for (const Optimizer& optimizer : optimizers) {
    notes.add_optimizer(optimizer, optimizers.size() > 1 ? optimizer->name() + " " : "");
  }
  for (const ParameterGroup& group : options.groups)
    notes.add_group(group, group.optimizer.value_or(options.optimizer));
  notes.add("clip_norm", static_cast<double>(options.clip_norm));
  notes.add("weight_limit", static_cast<double>(options.weight_limit));
  return std::move(notes.lines);
}

}  // namespace halfstep::train
