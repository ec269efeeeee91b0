#include "ops/cast.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <optional>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

void lower_conversion(plan::Lowering& out, plan::TensorId from, plan::TensorId to,
                      const std::optional<ops::NoiseKey>& noise) {
  struct Push {
    std::uint32_t quads;
    std::uint32_t stream;
    std::uint32_t seed[2];
    std::uint32_t step[2];
  };
  const std::int64_t quads = plan::layout(out.type(from).shape).quads();
  const ops::NoiseKey key = noise.value_or(ops::NoiseKey{});
  const Push push{ops::index32(out, quads),
                  key.stream,
                  {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
                  {static_cast<std::uint32_t>(key.step), static_cast<std::uint32_t>(key.step >> 32)}};
  const std::string shader =
      fmt::format("cast.{}_{}", out.storage(out.type(from).dtype), out.storage(out.type(to).dtype));
  ops::dispatch_flat(out, shader, quads, push, {{from, plan::Access::read}, {to, plan::Access::write}},
                     {noise.has_value()});
}

/// The same values in another floating type.
class Cast final : public graph::Operator {
 public:
  explicit Cast(DType dtype, std::optional<ops::NoiseKey> noise = {}) : dtype_(dtype), noise_(noise) {}

  std::string name() const override { return noise_ ? "stochastic_cast" : "cast"; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    ops::expect_float(name(), "a tensor", inputs[0]);
    ops::expect_float(name(), "a result", {dtype_, inputs[0].shape});
    return {{dtype_, inputs[0].shape}};
  }

  // dx = dy in x's type
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor dy = *call.cotangents[0];
    return {dy.dtype() == call.inputs[0].dtype() ? dy : cast(dy, call.inputs[0].dtype())};
  }

  void lower(plan::Lowering& out) const override {
    if (out.input_type(0).dtype == dtype_) return out.alias(0, 0);
    lower_conversion(out, out.input(0), out.output(0), noise_);
  }

 private:
  DType dtype_;
  std::optional<ops::NoiseKey> noise_;
};

}  // namespace

// A cast to the type a tensor has already is kept: the precision policy may yet give the tensor another type.
Tensor cast(Tensor x, DType dtype) {
  return ops::apply<Cast>({x}, dtype);
}

Tensor ops::stochastic_cast(Tensor x, NoiseKey key) {
  return ops::apply<Cast>({x}, DType::f16, key);
}

void ops::lower_cast(plan::Lowering& out, plan::TensorId from, plan::TensorId to) {
  lower_conversion(out, from, to, {});
}

plan::TensorId ops::in_f32(plan::Lowering& out, plan::TensorId tensor) {
  if (out.type(tensor).dtype == DType::f32) return tensor;
  const plan::TensorId wide = out.workspace("wide", {DType::f32, out.type(tensor).shape});
  lower_cast(out, tensor, wide);
  return wide;
}

}  // namespace halfstep
