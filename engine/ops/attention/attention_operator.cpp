#include <halfstep/ops.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "graph/operator.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_pass.h"

namespace halfstep::ops {
namespace {

/// What both operators are made with: which inputs there are beside q, k and v.
struct Form {
  AttentionSettings settings;
  bool masked = false;
  bool padded = false;

  graph::Attributes attributes() const {
    graph::Attributes all{{"causal", settings.causal}, {"window", settings.window},
                          {"scale", settings.scale},   {"mask", masked},
                          {"padding", padded},         {"segments", settings.segments}};
    if (settings.composed) all.push_back({"composed", true});
    if (settings.dropout != 0) {
      all.push_back({"dropout", settings.dropout});
      all.push_back({"noise", settings.noise});
    }
    return all;
  }
  std::size_t count() const { return 3 + std::size_t{masked} + std::size_t{padded}; }

  AttentionInputs inputs(std::span<const Tensor> x) const {
    AttentionInputs result{x[0], x[1], x[2]};
    if (masked) result.mask = x[3];
    if (padded) result.padding = x[count() - 1];
    return result;
  }
  AttentionTensors tensors(plan::Lowering& out) const {
    AttentionTensors result{.q = out.input(0), .k = out.input(1), .v = out.input(2)};
    if (masked) result.mask = out.input(3);
    if (padded) result.padding = out.input(count() - 1);
    if (settings.segments) result.padding = lower_segments(out, *result.padding);
    return result;
  }
};

/// Whether it is computed as products: on a software driver, which they suit better (see Target::score_bytes) where the
/// whole row is wanted, where a kernel cannot have as many buffers as those of attention.glsl, and where that is asked
/// for.
bool is_composed(const plan::Lowering& out, const AttentionSettings& settings) {
  constexpr std::uint32_t buffers = 13;
  const Shape q = out.input_type(0).shape;
  const TensorType scores{DType::f32, {q[0], q[1], q[2], out.input_type(1).shape[2]}};
  if (settings.composed || out.target().max_storage_buffers < buffers) return true;
  return out.target().cpu && !settings.segments && plan::byte_size(scores) <= out.target().score_bytes;
}

/// A number for each query, as rows of the last axis.
TensorType statistic_of(const TensorType& q) {
  return {DType::f32, {q.shape[0], q.shape[1], q.shape[2]}};
}

/// dq, dk and dv from the inputs of Attention, its outputs and dy.
class AttentionGradient final : public graph::Operator {
 public:
  explicit AttentionGradient(Form form) : form_(std::move(form)) {}

  std::string name() const override { return "attention_gradient"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    return {inputs[0], inputs[1], inputs[2]};
  }

  void lower(plan::Lowering& out) const override {
    const std::size_t first = form_.count();
    if (is_composed(out, form_.settings)) {
      out.lower_with_wide_sums([&](std::span<const Tensor> x) {
        return composed_attention_gradients(form_.inputs(x), form_.settings, x[first + 3]);
      });
      return;
    }
    AttentionTensors tensors = form_.tensors(out);
    tensors.y = out.input(first);
    tensors.largest = out.input(first + 1);
    tensors.inverse_total = out.input(first + 2);
    tensors.dy = out.input(first + 3);
    tensors.delta = out.workspace("dy . y", statistic_of(out.input_type(0)));
    tensors.dq = out.output(0);
    tensors.dk = out.output(1);
    tensors.dv = out.output(2);
    lower_attention(out, AttentionPass::queries, tensors, form_.settings);
    lower_attention(out, AttentionPass::keys, tensors, form_.settings);
  }

 private:
  Form form_;
};

/// The mask's gradient from the inputs of Attention and dy: a sum of what no kernel of attention stores.
class MaskGradient final : public graph::Operator {
 public:
  explicit MaskGradient(Form form) : form_(std::move(form)) {}

  std::string name() const override { return "attention_mask_gradient"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[3]}; }

  void lower(plan::Lowering& out) const override {
    out.lower_with_wide_sums([&](std::span<const Tensor> x) {
      return std::vector{composed_mask_gradient(form_.inputs(x), form_.settings, x[form_.count()])};
    });
  }

 private:
  Form form_;
};

/// y, and f32 {n, h, queries} each: the largest score of each query, and 1 / the sum of exp(score - largest), or 0 if
/// it sees no key.
class Attention final : public graph::Operator {
 public:
  explicit Attention(Form form) : form_(std::move(form)) {}

  std::string name() const override { return "attention"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    TensorType y = inputs[0];
    y.shape[3] = inputs[2].shape[3];
    return {y, statistic_of(inputs[0]), statistic_of(inputs[0])};
  }

  // p = softmax(q k^T scale + mask), ds = p (dy v^T - sum(dy y)): dq = ds k scale, dk = ds^T q scale, dv = p^T dy
  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor dy = *call.cotangents[0];
    graph::Gradients gradients(call.inputs.size());
    if (call.needed[0] || call.needed[1] || call.needed[2]) {
      std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.end());
      inputs.insert(inputs.end(), call.outputs.begin(), call.outputs.end());
      inputs.push_back(dy);
      const std::vector<Tensor> found = graph::apply(std::make_shared<AttentionGradient>(form_), inputs);
      for (std::size_t i = 0; i < found.size(); ++i) gradients[i] = found[i];
    }
    if (form_.masked && call.needed[3]) {
      std::vector<Tensor> scored(call.inputs.begin(), call.inputs.end());
      scored.push_back(dy);
      gradients[3] = graph::apply_one(std::make_shared<MaskGradient>(form_), scored);
    }
    return gradients;
  }

  std::optional<Tensor> inference(std::span<const Tensor> inputs) const override {
    if (form_.settings.dropout == 0) return {};
    Form form = form_;
    form.settings.dropout = 0;
    return graph::apply(std::make_shared<Attention>(form), inputs).front();
  }

  void lower(plan::Lowering& out) const override {
    if (is_composed(out, form_.settings)) {
      out.lower_with_wide_sums(
          [&](std::span<const Tensor> x) { return std::vector{composed_attention(form_.inputs(x), form_.settings)}; });
      return;
    }
    AttentionTensors tensors = form_.tensors(out);
    tensors.y = out.output(0);
    tensors.largest = out.output(1);
    tensors.inverse_total = out.output(2);
    lower_attention(out, AttentionPass::forward, tensors, form_.settings);
  }

 private:
  Form form_;
};

}  // namespace

Tensor attention(const AttentionInputs& inputs, const AttentionSettings& settings) {
  std::vector<Tensor> all{inputs.q, inputs.k, inputs.v};
  if (inputs.mask) all.push_back(*inputs.mask);
  if (inputs.padding) all.push_back(*inputs.padding);
  const Form form{settings, inputs.mask.has_value(), inputs.padding.has_value()};
  return graph::apply(std::make_shared<Attention>(form), all).front();
}

}  // namespace halfstep::ops
