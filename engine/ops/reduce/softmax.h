#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <optional>

namespace halfstep::ops {

/// Which keys of scores {batch, ..., queries, keys} have a probability; the others' is 0, and no score is read for
/// them.
struct VisibleKeys {
  bool causal = false;      ///< query i sees no key after i
  std::int64_t window = 0;  ///< query i sees keys less than this away from i; 0: all
  bool segments = false;    ///< query i sees the keys of its own segment
};

/// The softmax of scores over the keys that are visible. With segments, `padding` is u32 {batch, keys}, the segment of
/// each query and key; otherwise u32 {batch}, where there is one: keys from a batch's length on are not visible. A query
/// that sees no key has probabilities of 0.
Tensor masked_softmax(Tensor scores, const VisibleKeys& visible, std::optional<Tensor> padding);

/// y (dy - sum(y dy)) over the last axis: the gradient of softmax, from its result y.
Tensor softmax_gradient(Tensor y, Tensor dy);

}  // namespace halfstep::ops
