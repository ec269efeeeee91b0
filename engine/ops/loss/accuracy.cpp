#include <halfstep/ops.h>

#include <optional>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/loss/row_loss.h"

namespace halfstep {
namespace {

/// The fraction {} of rows whose largest logit is the label's.
class Accuracy final : public graph::Operator {
 public:
  explicit Accuracy(std::uint32_t ignore) : ignore_(ignore) {}

  std::string name() const override { return "accuracy"; }
  graph::Attributes attributes() const override { return {{"ignore", static_cast<std::int64_t>(ignore_)}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }
  std::optional<std::uint32_t> also_ignored() const override { return ignore_; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_classification(name(), inputs);
    return {{DType::f32, {}}};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType statistics{DType::f32, ops::statistics_shape(out.input_type(0).shape[0])};
    ops::lower_rows(out, name(), out.workspace("statistics", statistics), ignore_);
  }

 private:
  std::uint32_t ignore_;
};

}  // namespace

Tensor accuracy(Tensor logits, Tensor labels, std::uint32_t ignore) {
  return ops::apply<Accuracy>({logits, labels}, ignore);
}

}  // namespace halfstep
