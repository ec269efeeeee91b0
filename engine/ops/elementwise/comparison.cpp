#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <utility>

#include "ops/apply.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"
#include "ops/shape/broadcast.h"

namespace halfstep {
namespace {

using Numbers = std::span<const ops::Number>;

/// 1 where a comparison of a and b holds, 0 elsewhere; without a gradient.
class Comparison final : public ops::Elementwise {
 public:
  using Elementwise::Elementwise;
  graph::Numerics numerics() const override { return graph::Numerics::pair; }
  graph::Gradients vjp(const graph::Vjp& /*call*/) const override { return graph::Gradients(2); }
};

/// The share of dy that the larger of two numbers receives: half of it where they are equal.
ops::Number share_of_larger(ops::Number a, ops::Number b) {
  return (greater(b, a) + at_least(b, a)) * -0.5F + 1.0F;
}

/// The larger or the smaller of a and b.
class Extreme final : public ops::Elementwise {
 public:
  explicit Extreme(bool larger)
      : Elementwise(larger ? "maximum" : "minimum",
                    [larger](Numbers x) { return larger ? maximum(x[0], x[1]) : minimum(x[0], x[1]); }),
        larger_(larger) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy where a is taken, half of it where a and b are equal; db likewise; each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const auto formula = [larger = larger_](Numbers v) {
      const ops::Number share = larger ? share_of_larger(v[1], v[2]) : share_of_larger(v[2], v[1]);
      return where_nonzero(v[0], share) * share;
    };
    for (std::size_t i = 0; i < 2; ++i) {
      if (!call.needed[i]) continue;
      const Tensor all = ops::apply<Elementwise>({*call.cotangents[0], call.inputs[i], call.inputs[1 - i]},
                                                 name() + "_gradient", formula);
      gradients[i] = ops::sum_to_shape(all, call.inputs[i].shape());
    }
    return gradients;
  }

 private:
  bool larger_;
};

/// a where the condition is not 0, else b.
class Where final : public ops::Elementwise {
 public:
  Where() : Elementwise("where", [](Numbers x) { return where_nonzero(x[1], x[0]) + where_zero(x[2], x[0]); }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy where the condition is not 0, else 0; db = the rest of dy; each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(3);
    const Tensor dy = *call.cotangents[0];
    const Tensor condition = call.inputs[0];
    if (call.needed[1]) {
      const Tensor all = ops::apply<Elementwise>({dy, condition}, "where_gradient",
                                                 [](Numbers v) { return where_nonzero(v[0], v[1]); });
      gradients[1] = ops::sum_to_shape(all, call.inputs[1].shape());
    }
    if (call.needed[2]) {
      const Tensor all = ops::apply<Elementwise>({dy, condition}, "where_not_gradient",
                                                 [](Numbers v) { return where_zero(v[0], v[1]); });
      gradients[2] = ops::sum_to_shape(all, call.inputs[2].shape());
    }
    return gradients;
  }
};

}  // namespace

Tensor maximum(Tensor a, Tensor b) {
  return ops::apply<Extreme>({a, b}, true);
}

Tensor minimum(Tensor a, Tensor b) {
  return ops::apply<Extreme>({a, b}, false);
}

Tensor greater(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "greater", [](Numbers v) { return greater(v[0], v[1]); });
}

Tensor greater_equal(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "greater_equal", [](Numbers v) { return at_least(v[0], v[1]); });
}

Tensor less(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "less", [](Numbers v) { return greater(v[1], v[0]); });
}

Tensor less_equal(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "less_equal", [](Numbers v) { return at_least(v[1], v[0]); });
}

Tensor equal(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "equal", [](Numbers v) { return equal(v[0], v[1]); });
}

Tensor not_equal(Tensor a, Tensor b) {
  return ops::apply<Comparison>({a, b}, "not_equal", [](Numbers v) { return 1.0F - equal(v[0], v[1]); });
}

Tensor where(Tensor condition, Tensor a, Tensor b) {
  return ops::apply<Where>({condition, a, b});
}

}  // namespace halfstep
