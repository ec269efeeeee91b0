#include <halfstep/ops.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/loss/row_loss.h"

namespace halfstep {
namespace {

/// The fraction {} of rows whose largest logit is the label's.
class Accuracy final : public graph::Operator {
 public:
  std::string name() const override { return "accuracy"; }
  graph::Attributes attributes() const override { return {}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }
  bool reads_labels() const override { return true; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_classification(name(), inputs);
    return {{DType::f32, {}}};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType statistics{DType::f32, ops::statistics_shape(out.input_type(0).shape[0])};
    ops::lower_rows(out, name(), out.workspace("statistics", statistics));
  }
};

}  // namespace

Tensor accuracy(Tensor logits, Tensor labels) {
  return ops::apply<Accuracy>({logits, labels});
}

}  // namespace halfstep
