#include "ops/expect.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <cmath>

#include "graph/dtype.h"

namespace halfstep::ops {

void expect_count(std::string_view op, std::span<const TensorType> inputs, std::size_t count) {
  if (inputs.size() != count) fail(op, fmt::format("expected {} tensors, got {}", count, inputs.size()));
}

void expect_float(std::string_view op, std::string_view role, const TensorType& type) {
  if (is_floating(type.dtype)) return;
  fail(op, fmt::format("expected {} of {}, got {}", role, graph::floating_names(), to_string(type)));
}

void expect_rank(std::string_view op, std::string_view role, const TensorType& type, std::size_t rank,
                 std::string_view form) {
  if (type.shape.size() == rank) return;
  fail(op, fmt::format("expected {} {}, got {}", role, form, to_string(type)));
}

void expect_same_float(std::string_view op, const TensorType& a, const TensorType& b) {
  expect_float(op, "a tensor", a);
  expect_float(op, "a tensor", b);
  if (a.dtype == b.dtype) return;
  fail(op, fmt::format("expected tensors of one type, got {} and {}", to_string(a), to_string(b)),
       "cast one of them to the other's type");
}

void expect_same_shape(std::string_view op, const TensorType& a, const TensorType& b) {
  if (a.shape == b.shape) return;
  fail(op, fmt::format("expected tensors of one shape, got {} and {}", to_string(a), to_string(b)));
}

void expect_epsilon(std::string_view op, float epsilon) {
  if (epsilon >= 0x1p-125F && std::isfinite(epsilon)) return;
  fail(op, fmt::format("expected an epsilon of 2^-125 or more, got {}", epsilon));
}

void expect_classification(std::string_view op, std::span<const TensorType> inputs) {
  expect_count(op, inputs, 2);
  const TensorType& logits = inputs[0];
  const TensorType& labels = inputs[1];
  expect_float(op, "logits", logits);
  expect_rank(op, "logits", logits, 2, "{n, classes}");
  constexpr std::int64_t most = 1 << 24;  // class numbers that f32 represents
  if (logits.shape[1] > most) fail(op, fmt::format("expected at most {} classes, got {}", most, to_string(logits)));
  if (labels.dtype == DType::u32 && labels.shape == Shape{logits.shape[0]}) return;
  fail(op, fmt::format("expected labels u32 {{{}}} for logits {}, got {}", logits.shape[0], to_string(logits),
                       to_string(labels)));
}

}  // namespace halfstep::ops
