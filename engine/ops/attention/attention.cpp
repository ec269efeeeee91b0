#include "ops/attention/attention.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/ir.h"
#include "ops/elementwise/dropout.h"
#include "ops/expect.h"
#include "ops/shape/broadcast.h"

namespace halfstep {
namespace {

void check_types(const TensorType& q, const TensorType& k, const TensorType& v) {
  ops::expect_float("attention", "queries", q);
  ops::expect_float("attention", "keys", k);
  ops::expect_float("attention", "values", v);
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

void check_options(const TensorType& q, const TensorType& k, const AttentionOptions& options) {
  if (options.window < 0) fail("attention", fmt::format("expected a window of 0 or more, got {}", options.window));
  if (options.scale && !std::isfinite(*options.scale)) {
    fail("attention", fmt::format("expected a finite scale, got {}", *options.scale));
  }
  if (options.key_lengths && options.key_lengths->type() != TensorType{DType::u32, {q.shape[0]}}) {
    fail("attention",
         fmt::format("expected key lengths u32 {{{}}}, got {}", q.shape[0], to_string(options.key_lengths->type())));
  }
  if (!options.segments) return;
  const TensorType segments{DType::u32, {q.shape[0], q.shape[2]}};
  if (options.segments->type() != segments || k.shape[2] != q.shape[2]) {
    fail("attention", fmt::format("expected segments {} of as many keys, got {} of {} keys", to_string(segments),
                                  to_string(options.segments->type()), k.shape[2]));
  }
  if (options.key_lengths) {
    fail("attention", "expected key lengths or segments, got both", "give padding a segment of its own");
  }
}

/// Whether `mask` broadcasts to `scores`.
bool fits(const Shape& mask, const Shape& scores) {
  if (mask.size() > scores.size()) return false;
  for (std::size_t i = 1; i <= mask.size(); ++i) {
    const std::int64_t extent = mask[mask.size() - i];
    if (extent != 1 && extent != scores[scores.size() - i]) return false;
  }
  return true;
}

}  // namespace

Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options) {
  check_types(q.type(), k.type(), v.type());
  check_options(q.type(), k.type(), options);
  const Shape scores{q.dim(0), q.dim(1), q.dim(2), k.dim(2)};
  if (options.mask) ops::expect_float("attention", "a mask", options.mask->type());
  if (options.mask && !fits(options.mask->shape(), scores)) {
    fail("attention", fmt::format("expected a mask that broadcasts to {}, got {}", to_string(scores),
                                  to_string(options.mask->type())));
  }
  ops::AttentionSettings settings{
      .causal = options.causal,
      .window = options.window,
      .segments = options.segments.has_value(),
      .composed = !options.fused || std::max(q.dim(3), v.dim(3)) > ops::most_head_width,
      .scale = options.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(q.dim(3))))),
      .dropout = ops::checked_probability("attention", options.dropout)};
  if (settings.dropout != 0) settings.noise = ops::fresh_noise(graph::ir_of(q));
  const ops::AttentionInputs inputs{q, k, v, options.mask, options.segments ? options.segments : options.key_lengths};
  return ops::attention(inputs, settings);
}

}  // namespace halfstep
