#include "models/gpt.h"

#include <cmath>
#include <string>

#include "models/transformer.h"

namespace halfstep::models {
namespace {

constexpr float epsilon = 1e-5F;

/// x {..., in} times weights {in, units}, which files have in this order, plus a bias.
Tensor projection(const Scope& scope, Tensor x, std::int64_t units, float stddev) {
  const Tensor weight = scope.parameter("weight", {x.dim(-1), units}, normal(stddev));
  return linear(x, weight, scope.parameter("bias", {units}, constant(0)));
}

/// What the attention of a block adds. `stddev` is of the weights whose results are added to x.
Tensor attention_layer(const Scope& scope, Tensor x, const GptOptions& options, float stddev) {
  const std::vector<Tensor> parts = split(projection(scope / "c_attn", x, 3 * options.width, 0.02F),
                                          {options.width, options.width, options.width}, -1);
  const Tensor y =
      attention_by_head(parts[0], parts[1], parts[2], options.heads, {.causal = true, .dropout = options.dropout});
  return dropout(projection(scope / "c_proj", y, options.width, stddev), options.dropout);
}

Tensor feed_forward(const Scope& scope, Tensor x, const GptOptions& options, float stddev) {
  const Tensor hidden = gelu(projection(scope / "c_fc", x, 4 * options.width, 0.02F), Gelu::tanh);
  return dropout(projection(scope / "c_proj", hidden, options.width, stddev), options.dropout);
}

}  // namespace

Tensor gpt(const Scope& scope, Tensor tokens, const GptOptions& options) {
  const Tensor table = embedding_table(scope / "wte", options.vocabulary, options.width);
  const Tensor positions = embedding_table(scope / "wpe", options.positions, options.width);
  Tensor x = add(embedding(table, tokens), learned_positions("gpt", positions, tokens.dim(1)));
  x = dropout(x, options.dropout);
  // Each layer adds to x twice: so what is added starts out smaller the more layers there are.
  const float stddev = 0.02F / std::sqrt(2 * static_cast<float>(options.layers));
  for (std::int64_t i = 0; i < options.layers; i++) {
    const Scope block = scope / "h" / std::to_string(i);
    x = add(x, attention_layer(block / "attn", layer_norm(block / "ln_1", x, epsilon), options, stddev));
    x = add(x, feed_forward(block / "mlp", layer_norm(block / "ln_2", x, epsilon), options, stddev));
  }
  return matmul(layer_norm(scope / "ln_f", x, epsilon), table, {.transpose_b = true});
}

}  // namespace halfstep::models
