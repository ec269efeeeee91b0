#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/reduce/softmax.h"

namespace halfstep {
namespace {

void check_shapes(const TensorType& q, const TensorType& k, const TensorType& v) {
  const auto four = [](const TensorType& type) { return type.shape.size() == 4; };
  const bool fit = four(q) && four(k) && four(v) && k.shape[0] == q.shape[0] && v.shape[0] == q.shape[0] &&
                   k.shape[3] == q.shape[3] && k.shape[1] == v.shape[1] && k.shape[2] == v.shape[2];
  if (!fit) {
    fail("attention", fmt::format("expected q {{n, h, queries, c}}, k {{n, g, keys, c}} and v {{n, g, keys, d}}, got "
                                  "{}, {} and {}",
                                  to_string(q), to_string(k), to_string(v)));
  }
  if (q.shape[1] % k.shape[1] != 0) {
    fail("attention",
         fmt::format("expected query heads that are a multiple of {} key heads, got {}", k.shape[1], q.shape[1]));
  }
}

void check_options(const TensorType& q, const AttentionOptions& options) {
  if (options.window < 0) fail("attention", fmt::format("expected a window of 0 or more, got {}", options.window));
  if (options.scale && !std::isfinite(*options.scale)) {
    fail("attention", fmt::format("expected a finite scale, got {}", *options.scale));
  }
  if (options.key_lengths && options.key_lengths->type() != TensorType{DType::u32, {q.shape[0]}}) {
    fail("attention",
         fmt::format("expected key lengths u32 {{{}}}, got {}", q.shape[0], to_string(options.key_lengths->type())));
  }
}

}  // namespace

// The heads that share a key head are rows of one product.
Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  check_shapes(q.type(), k.type(), v.type());
  check_options(q.type(), options);
  const Shape scores{q.dim(0), q.dim(1), q.dim(2), k.dim(2)};
  const std::int64_t rows = q.dim(1) / k.dim(1) * q.dim(2);
  const float factor = options.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(q.dim(3)))));
  const Tensor queries = reshape(scale(q, factor), {q.dim(0), k.dim(1), rows, q.dim(3)});
  Tensor score = reshape(matmul(queries, k, {.transpose_b = true}), scores);
  if (options.mask) score = add(score, *options.mask);
  if (score.shape() != scores) {
    fail("attention", fmt::format("expected a mask that broadcasts to {}, got {}", to_string(scores),
                                  to_string(options.mask->type())));
  }
  Tensor share = ops::masked_softmax(score, {options.causal, options.window}, options.key_lengths);
  if (options.dropout != 0) share = dropout(share, options.dropout);
  const Tensor result = matmul(reshape(share, {q.dim(0), k.dim(1), rows, k.dim(2)}), v);
  return reshape(result, {q.dim(0), q.dim(1), q.dim(2), v.dim(3)});
}

}  // namespace halfstep
