#include <halfstep/error.h>
#include <halfstep/precision.h>

#include <fmt/format.h>

#include <iterator>

#include "graph/dtype.h"

namespace halfstep {
namespace {

Lists all_in(DType dtype) {
  return {dtype, dtype, dtype, dtype, dtype};
}

struct Preset {
  std::string_view level;
  std::string_view name;
  Precision (*make)();
};

constexpr Preset presets[] = {
    {"O0", "float32", Precision::float32},
    {"O1", "autocast", Precision::autocast},
    {"O2", "mixed", Precision::mixed},
    {"O3", "float16", [] { return Precision::float16(); }},
    {"", "bfloat16", [] { return Precision::bfloat16(); }},
    {"", "bfloat16_weights", [] { return Precision::bfloat16(DType::bf16); }},
    {"", "float8", Precision::float8},
};

}  // namespace

Precision Precision::autocast() {
  Precision precision;
  precision.name = "autocast";
  precision.lists = {
      .products = DType::f16, .pairs = widest, .reductions = DType::f32, .norms = DType::f32, .others = widest};
  precision.promote = true;
  precision.loss_scale = LossScale::dynamic();
  return precision;
}

Precision Precision::mixed() {
  Precision precision;
  precision.name = "mixed";
  precision.parameters = DType::f16;
  precision.lists = all_in(DType::f16);
  precision.lists.norms = DType::f32;
  precision.loss_scale = LossScale::dynamic();
  return precision;
}

Precision Precision::float16(float loss_scale) {
  Precision precision;
  precision.name = "float16";
  precision.weights = DType::f16;
  precision.parameters = DType::f16;
  precision.lists = all_in(DType::f16);
  precision.rounding.weights = Rounding::stochastic;
  precision.loss_scale = LossScale::fixed(loss_scale);
  return precision;
}

Precision Precision::bfloat16(DType weights) {
  Precision precision;
  precision.name = weights == DType::f32 ? "bfloat16" : "bfloat16_weights";
  precision.weights = weights;
  precision.parameters = DType::bf16;
  precision.lists = all_in(DType::bf16);
  precision.lists.norms = DType::f32;
  if (weights != DType::f32) precision.rounding.weights = Rounding::stochastic;
  return precision;
}

Precision Precision::float8() {
  Precision precision = mixed();
  precision.name = "float8";
  precision.float8_linear = true;
  return precision;
}

Precision Precision::level(std::string_view name) {
  std::string known;
  for (const Preset& preset : presets) {
    if (name == preset.name || (!preset.level.empty() && name == preset.level)) return preset.make();
    const bool last = &preset == std::end(presets) - 1;
    if (!known.empty()) known += last ? " or " : ", ";
    known += preset.level.empty() ? preset.name : fmt::format("{} ({})", preset.level, preset.name);
  }
  fail("precision", fmt::format("expected {}, got '{}'", known, name));
}

std::vector<std::string> Precision::names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

Precision& Precision::layer(std::string pattern, DType dtype) {
  if (!is_floating(dtype)) {
    fail("precision", fmt::format("expected {} for the layers '{}', got {}", graph::floating_names(), pattern,
                                  halfstep::name(dtype)));
  }
  layers.emplace_back(std::move(pattern), dtype);
  return *this;
}

}  // namespace halfstep
