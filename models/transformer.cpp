#include "models/transformer.h"

#include <halfstep/error.h>

#include <string>

namespace halfstep::models {
Tensor embedding_table(const Scope& scope, std::int64_t rows, std::int64_t width) {
  return scope.parameter("weight", {rows, width}, normal(0.02F));
}

Tensor layer_norm(const Scope& scope, Tensor x, float epsilon) {
  const Shape channels{x.dim(-1)};
  const Tensor weight = scope.parameter("weight", channels, constant(1));
  const Tensor bias = scope.parameter("bias", channels, constant(0));
  return halfstep::layer_norm(x, weight, bias, epsilon);
}

Tensor split_heads(Tensor x, std::int64_t heads) {
  if (heads < 1 || x.dim(-1) % heads != 0) {
    fail("attention", "expected a width that is a multiple of the heads, got " + std::to_string(x.dim(-1)) + " and " +
                          std::to_string(heads) + " heads");
  }
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Tensor join_heads(Tensor x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Tensor attention_by_head(Tensor q, Tensor k, Tensor v, std::int64_t heads, const AttentionOptions& options) {
  return join_heads(attention(split_heads(q, heads), split_heads(k, heads), split_heads(v, heads), options));
}

void check_layers(const char* model, std::int64_t layers) {
  if (layers < 1) fail(model, "expected 1 layer or more, got " + std::to_string(layers));
}

Tensor learned_positions(const char* model, Tensor table, std::int64_t count) {
  if (count > table.dim(0)) {
    fail(model, "expected at most " + std::to_string(table.dim(0)) + " positions, got " + std::to_string(count));
  }
  return count == table.dim(0) ? table : slice(table, {0, 0}, {count, table.dim(1)});
}

}  // namespace halfstep::models
