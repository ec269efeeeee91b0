#include "ops/elementwise/multiply_adds.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

class MultiplyAdds final : public graph::Operator {
 public:
  MultiplyAdds(std::int32_t rounds, float factor) : rounds_(rounds), factor_(factor) {}

  std::string name() const override { return "multiply_adds"; }
  graph::Attributes attributes() const override { return {{"rounds", std::int64_t{rounds_}}, {"factor", factor_}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_count(name(), inputs, 1);
    const TensorType& x = inputs[0];
    if (x.dtype != DType::f32 || x.shape.empty() || x.shape.back() % 4 != 0) {
      fail(name(), fmt::format("expected f32 with a last axis of whole quads, got {}", to_string(x)));
    }
    if (rounds_ < 1) fail(name(), fmt::format("expected at least one round, got {}", rounds_));
    return {x};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t quads;
      std::int32_t rounds;
      float factor;
    };
    const std::int64_t count = elements(out.type(out.output(0)).shape);
    const Push push{index32(out, count / 4), rounds_, factor_};
    dispatch_flat(out, "multiply_adds", count / 4, push,
                  {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}}, {}, {.rounds = rounds_});
  }

 private:
  std::int32_t rounds_;
  float factor_;
};

}  // namespace

Tensor multiply_adds(Tensor x, std::int32_t rounds, float factor) {
  return apply<MultiplyAdds>({x}, rounds, factor);
}

}  // namespace halfstep::ops
