#include <halfstep/ops.h>

#include "ops/attention/attention.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/dropout.h"
#include "ops/gemm/matmul.h"
#include "ops/reduce/softmax.h"
#include "ops/shape/broadcast.h"

namespace halfstep::ops {
namespace {

/// x {n, h, rows, columns} as {n, g, h / g * rows, columns}: the heads that share keys are rows of one product.
Tensor by_key_head(Tensor x, const AttentionInputs& inputs) {
  const std::int64_t key_heads = inputs.k.dim(1);
  return reshape(x, {x.dim(0), key_heads, x.dim(1) / key_heads * x.dim(2), x.dim(3)});
}

/// The rows of a product as {n, h, queries, keys}.
Tensor by_query_head(Tensor x, const AttentionInputs& inputs) {
  return reshape(x, {inputs.q.dim(0), inputs.q.dim(1), inputs.q.dim(2), x.dim(3)});
}

/// The weights {n, h, queries, keys} before dropout, in f32.
Tensor weights_of(const AttentionInputs& inputs, const AttentionSettings& settings) {
  const Tensor products = matmul_in_f32(by_key_head(inputs.q, inputs), inputs.k, {.transpose_b = true});
  Tensor scores = scale(by_query_head(products, inputs), settings.scale);
  if (inputs.mask) scores = add(scores, in_type(*inputs.mask, DType::f32));
  return masked_softmax(scores, {settings.causal, settings.window, settings.segments}, inputs.padding);
}

Tensor dropped(Tensor x, const AttentionSettings& settings) {
  return settings.dropout == 0 ? x : dropout(x, settings.dropout, settings.noise);
}

/// The weights before dropout, and the gradient for the scores, both f32 {n, h, queries, keys}.
struct ScoreGradients {
  Tensor weights, scores;
};

// ds = p (dp - sum(p dp)) with dp = dy v^T
ScoreGradients score_gradients(const AttentionInputs& inputs, const AttentionSettings& settings, Tensor dy) {
  const Tensor weights = weights_of(inputs, settings);
  const Tensor products = matmul_in_f32(by_key_head(dy, inputs), inputs.v, {.transpose_b = true});
  const Tensor dp = dropped(by_query_head(products, inputs), settings);
  return {weights, softmax_gradient(weights, dp)};
}

}  // namespace

Tensor composed_attention(const AttentionInputs& inputs, const AttentionSettings& settings) {
  const Tensor weights = in_type(dropped(weights_of(inputs, settings), settings), inputs.v.dtype());
  return by_query_head(matmul(by_key_head(weights, inputs), inputs.v), inputs);
}

// dq = ds k scale, dk = ds^T q scale, dv = p^T dy
std::vector<Tensor> composed_attention_gradients(const AttentionInputs& inputs, const AttentionSettings& settings,
                                                 Tensor dy) {
  const DType dtype = inputs.q.dtype();
  const ScoreGradients found = score_gradients(inputs, settings, dy);
  const Tensor ds = by_key_head(in_type(scale(found.scores, settings.scale), dtype), inputs);
  const Tensor p = by_key_head(in_type(dropped(found.weights, settings), dtype), inputs);
  return {by_query_head(matmul(ds, inputs.k), inputs), matmul(ds, by_key_head(inputs.q, inputs), {.transpose_a = true}),
          matmul(p, by_key_head(dy, inputs), {.transpose_a = true})};
}

Tensor composed_mask_gradient(const AttentionInputs& inputs, const AttentionSettings& settings, Tensor dy) {
  const TensorType mask = inputs.mask->type();
  return in_type(sum_to_shape(score_gradients(inputs, settings, dy).scores, mask.shape), mask.dtype);
}

}  // namespace halfstep::ops
