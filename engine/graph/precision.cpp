#include <halfstep/error.h>
#include <halfstep/precision.h>

#include <fmt/format.h>

namespace halfstep {
namespace {

Lists all_in_f16() {
  return {Compute::f16, Compute::f16, Compute::f16, Compute::f16, Compute::f16};
}

}  // namespace

Precision Precision::autocast() {
  Precision precision;
  precision.name = "autocast";
  precision.lists = {.products = Compute::f16,
                     .pairs = Compute::widest,
                     .reductions = Compute::f32,
                     .norms = Compute::f32,
                     .others = Compute::widest};
  precision.promote = true;
  precision.loss_scale = LossScale::dynamic();
  return precision;
}

Precision Precision::mixed() {
  Precision precision;
  precision.name = "mixed";
  precision.parameters = DType::f16;
  precision.lists = all_in_f16();
  precision.lists.norms = Compute::f32;
  precision.loss_scale = LossScale::dynamic();
  return precision;
}

Precision Precision::float16(float loss_scale) {
  Precision precision;
  precision.name = "float16";
  precision.weights = DType::f16;
  precision.parameters = DType::f16;
  precision.lists = all_in_f16();
  precision.rounding.weights = Rounding::stochastic;
  precision.loss_scale = LossScale::fixed(loss_scale);
  return precision;
}

Precision Precision::level(std::string_view name) {
  if (name == "O0" || name == "float32") return float32();
  if (name == "O1" || name == "autocast") return autocast();
  if (name == "O2" || name == "mixed") return mixed();
  if (name == "O3" || name == "float16") return float16();
  fail("precision", fmt::format("expected O0 (float32), O1 (autocast), O2 (mixed) or O3 (float16), got '{}'", name));
}

Precision& Precision::layer(std::string pattern, DType dtype) {
  if (dtype == DType::u32) {
    fail("precision", fmt::format("expected f32 or f16 for the layers '{}', got u32", pattern));
  }
  layers.emplace_back(std::move(pattern), dtype);
  return *this;
}

}  // namespace halfstep
