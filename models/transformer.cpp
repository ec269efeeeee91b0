#include "models/transformer.h"

#include <halfstep/error.h>

#include <string>

namespace halfstep::models {
namespace {

/// {n, t, heads * c} as {n, heads, t, c}.
Tensor by_head(Tensor x, std::int64_t heads) {
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

}  // namespace

Tensor embedding_table(const Scope& scope, std::int64_t rows, std::int64_t width) {
  return scope.parameter("weight", {rows, width}, normal(0.02F));
}

Tensor layer_norm(const Scope& scope, Tensor x, float epsilon) {
  const Shape channels{x.dim(-1)};
  const Tensor weight = scope.parameter("weight", channels, constant(1));
  const Tensor bias = scope.parameter("bias", channels, constant(0));
  return halfstep::layer_norm(x, weight, bias, epsilon);
}

Tensor attention_by_head(Tensor q, Tensor k, Tensor v, std::int64_t heads, const AttentionOptions& options) {
  if (heads < 1 || q.dim(-1) % heads != 0) {
    fail("attention", "expected a width that is a multiple of the heads, got " + std::to_string(q.dim(-1)) + " and " +
                          std::to_string(heads) + " heads");
  }
  const Tensor y = attention(by_head(q, heads), by_head(k, heads), by_head(v, heads), options);
  return reshape(permute(y, {0, 2, 1, 3}), {q.dim(0), q.dim(1), v.dim(2)});
}

Tensor learned_positions(const char* model, Tensor table, std::int64_t count) {
  if (count > table.dim(0)) {
    fail(model, "expected at most " + std::to_string(table.dim(0)) + " positions, got " + std::to_string(count));
  }
  return count == table.dim(0) ? table : slice(table, {0, 0}, {count, table.dim(1)});
}

}  // namespace halfstep::models
