#pragma once

#include <halfstep/ops.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The two ways to compute attention. Both take what halfstep::attention() has checked, and draw the same noise.
namespace halfstep::ops {

/// What attention computes, beside its tensors.
struct AttentionSettings {
  bool causal = false;
  std::int64_t window = 0;
  bool segments = false;
  float scale = 1;
  float dropout = 0;
  std::string noise{};  ///< the name of the dropout's
};

/// Queries {n, h, queries, c}, keys {n, g, keys, c} and values {n, g, keys, d}, as far as there are any a mask that
/// broadcasts to {n, h, queries, keys}, and as padding u32 key lengths {n}, or segments {n, keys} if the settings say
/// so.
struct AttentionInputs {
  Tensor q, k, v;
  std::optional<Tensor> mask{};
  std::optional<Tensor> padding{};
};

/// The widest heads that fused_attention() takes.
inline constexpr std::int64_t most_head_width = 256;

/// As products and a softmax in f32, which store scores and weights {n, h, queries, keys}.
Tensor composed_attention(const AttentionInputs& inputs, const AttentionSettings& settings);
/// Its gradients for q, k and v likewise: as products that compute the weights again.
std::vector<Tensor> composed_attention_gradients(const AttentionInputs& inputs, const AttentionSettings& settings,
                                                 Tensor dy);
/// The weights before dropout, and the gradient for the scores, both f32 {n, h, queries, keys}.
struct ScoreGradients {
  Tensor weights, scores;
};
ScoreGradients composed_score_gradients(const AttentionInputs& inputs, const AttentionSettings& settings, Tensor dy);

/// As one operator, which stores neither.
Tensor fused_attention(const AttentionInputs& inputs, const AttentionSettings& settings);

}  // namespace halfstep::ops
