#pragma once

#include <halfstep/ops.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The two ways to compute attention: by kernels of its own, which store no scores (attention_pass.h), and composed of
/// other operators. Both take what halfstep::attention() has checked, and draw the same noise.
namespace halfstep::ops {

/// What attention computes, beside its tensors.
struct AttentionSettings {
  bool causal = false;
  std::int64_t window = 0;
  bool segments = false;
  bool composed = false;  ///< on every device
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

/// The widest heads that attention's own kernels take.
inline constexpr std::int64_t most_head_width = 256;

/// The operator.
Tensor attention(const AttentionInputs& inputs, const AttentionSettings& settings);

/// As products and a softmax in f32, which store scores and weights {n, h, queries, keys}. This and what follows is for
/// lowering, with sums in f32.
Tensor composed_attention(const AttentionInputs& inputs, const AttentionSettings& settings);
/// Its gradients for q, k and v likewise: as products that compute the weights again.
std::vector<Tensor> composed_attention_gradients(const AttentionInputs& inputs, const AttentionSettings& settings,
                                                 Tensor dy);
/// Its gradient for the mask likewise.
Tensor composed_mask_gradient(const AttentionInputs& inputs, const AttentionSettings& settings, Tensor dy);

}  // namespace halfstep::ops
