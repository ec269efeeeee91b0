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
    return {cast(*call.cotangents[0], call.inputs[0].dtype())};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      std::uint32_t stream;
      std::uint32_t seed[2];
      std::uint32_t step[2];
    };
    const DType from = out.input_type(0).dtype;
    if (from == dtype_) return out.alias(0, 0);
    const std::int64_t quads = plan::layout(out.input_type(0).shape).quads();
    const ops::NoiseKey key = noise_.value_or(ops::NoiseKey{});
    const Push push{ops::index32(out, quads),
                    key.stream,
                    {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
                    {static_cast<std::uint32_t>(key.step), static_cast<std::uint32_t>(key.step >> 32)}};
    ops::dispatch_flat(out, fmt::format("cast.{}_{}", out.storage(from), out.storage(dtype_)), quads, push,
                       {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}},
                       {noise_.has_value()});
  }

 private:
  DType dtype_;
  std::optional<ops::NoiseKey> noise_;
};

}  // namespace

Tensor cast(Tensor x, DType dtype) {
  return x.dtype() == dtype ? x : ops::apply<Cast>({x}, dtype);
}

Tensor ops::stochastic_cast(Tensor x, NoiseKey key) {
  return ops::apply<Cast>({x}, DType::f16, key);
}

}  // namespace halfstep
