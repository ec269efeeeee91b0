#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"
#include "ops/loss/row_loss.h"

namespace halfstep {
namespace {

/// Inputs: logits {n, classes}, the statistics of the forward pass and the gradient of the loss {}. Output: the
/// gradient of the logits.
class CrossEntropyGradient final : public graph::Operator {
 public:
  explicit CrossEntropyGradient(float smoothing) : smoothing_(smoothing) {}

  std::string name() const override { return "cross_entropy_gradient"; }
  graph::Attributes attributes() const override { return {{"smoothing", smoothing_}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 3);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    struct Push {
      std::uint32_t rows;
      std::uint32_t classes;
      std::uint32_t quads_per_row;
    };
    const TensorType& logits = out.input_type(0);
    const plan::Layout lay = plan::layout(logits.shape);
    const Push push{ops::index32(out, lay.rows), ops::index32(out, lay.columns),
                    ops::index32(out, lay.quads_per_row())};
    ops::dispatch_flat(out, ops::variant(out, "cross_entropy_gradient", logits.dtype), lay.quads(), push,
                       {{out.input(0), plan::Access::read},
                        {out.input(1), plan::Access::read},
                        {out.input(2), plan::Access::read},
                        {out.output(0), plan::Access::write}},
                       {std::bit_cast<std::uint32_t>(smoothing_)});
  }

 private:
  float smoothing_;
};

/// Outputs: the loss {}, and the statistics of the rows that the gradient needs.
class CrossEntropy final : public graph::Operator {
 public:
  CrossEntropy(float smoothing, std::uint32_t ignore) : smoothing_(smoothing), ignore_(ignore) {}

  std::string name() const override { return "cross_entropy"; }
  graph::Attributes attributes() const override {
    return {{"smoothing", smoothing_}, {"ignore", static_cast<std::int64_t>(ignore_)}};
  }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }
  std::optional<std::uint32_t> also_ignored() const override { return ignore_; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_classification(name(), inputs);
    return {{DType::f32, {}}, {DType::f32, ops::statistics_shape(inputs[0].shape[0])}};
  }

  // dlogits = (softmax(logits) - target) dloss / rows that count
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    gradients[0] = ops::apply<CrossEntropyGradient>({call.inputs[0], call.outputs[1], *call.cotangents[0]}, smoothing_);
    return gradients;
  }

  void lower(plan::Lowering& out) const override {
    ops::lower_rows(out, name(), out.output(1), ignore_, {std::bit_cast<std::uint32_t>(smoothing_)});
  }

 private:
  float smoothing_;
  std::uint32_t ignore_;
};

}  // namespace

Tensor cross_entropy(Tensor logits, Tensor labels, float label_smoothing, std::uint32_t ignore) {
  if (!(label_smoothing >= 0 && label_smoothing < 1)) {
    fail("cross_entropy", fmt::format("expected a label smoothing from 0 up to 1, got {}", label_smoothing));
  }
  return ops::apply<CrossEntropy>({logits, labels}, label_smoothing, ignore);
}

}  // namespace halfstep
