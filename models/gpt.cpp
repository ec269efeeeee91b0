#include "models/gpt.h"

#include <cmath>
#include <functional>
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

/// How a block attends: from queries, keys and values {n, t, width} to {n, t, width}, in the scope of its attention.
using Attend = std::function<Tensor(const Scope& scope, Tensor q, Tensor k, Tensor v)>;

/// What the attention of a block adds. `stddev` is of the weights whose results are added to x.
Tensor attention_layer(const Scope& scope, Tensor x, const GptOptions& options, const Attend& attend, float stddev) {
  const std::vector<Tensor> parts = split(projection(scope / "c_attn", x, 3 * options.width, 0.02F),
                                          {options.width, options.width, options.width}, -1);
  const Tensor y = attend(scope, parts[0], parts[1], parts[2]);
  return dropout(projection(scope / "c_proj", y, options.width, stddev), options.dropout);
}

Tensor feed_forward(const Scope& scope, Tensor x, const GptOptions& options, float stddev) {
  const Tensor hidden = gelu(projection(scope / "c_fc", x, 4 * options.width, 0.02F), Gelu::tanh);
  return dropout(projection(scope / "c_proj", hidden, options.width, stddev), options.dropout);
}

/// The tables of tokens and of positions.
struct Tables {
  Tables(const Scope& scope, const GptOptions& options)
      : tokens(embedding_table(scope / "wte", options.vocabulary, options.width)),
        positions(embedding_table(scope / "wpe", options.positions, options.width)) {}

  Tensor tokens;
  Tensor positions;
};

/// All blocks, on x {n, t, width}.
Tensor blocks(const Scope& scope, Tensor x, const GptOptions& options, const Attend& attend) {
  check_layers("gpt", options.layers);
  x = dropout(x, options.dropout);
  // Each layer adds to x twice: so what is added starts out smaller the more layers there are.
  const float stddev = 0.02F / std::sqrt(2 * static_cast<float>(options.layers));
  for (std::int64_t i = 0; i < options.layers; i++) {
    const Scope block = scope / "h" / std::to_string(i);
    x = add(x, attention_layer(block / "attn", layer_norm(block / "ln_1", x, epsilon), options, attend, stddev));
    x = add(x, feed_forward(block / "mlp", layer_norm(block / "ln_2", x, epsilon), options, stddev));
  }
  return x;
}

/// The logits {..., vocabulary} of what the blocks leave.
Tensor head(const Scope& scope, Tensor x, const Tables& tables) {
  return matmul(layer_norm(scope / "ln_f", x, epsilon), tables.tokens, {.transpose_b = true});
}

/// The cache of that name with rows {n, heads, t, c} from position first {n} on.
Tensor cached(const Scope& scope, const char* name, Tensor rows, Tensor first, std::int64_t positions) {
  const Tensor cache = scope.cache(name, {rows.dim(0), rows.dim(1), positions, rows.dim(3)});
  const Tensor next = store_rows(cache, rows, first);
  update(cache, next);
  return next;
}

Tensor causal(Tensor q, Tensor k, Tensor v, const GptOptions& options) {
  return attention_by_head(q, k, v, options.heads, {.causal = true, .dropout = options.dropout});
}

/// x {n, t, width} of tokens {n, t} at positions 0 to t - 1.
Tensor embedded(const Tables& tables, Tensor tokens) {
  return add(embedding(tables.tokens, tokens), learned_positions("gpt", tables.positions, tokens.dim(1)));
}

}  // namespace

Tensor gpt(const Scope& scope, Tensor tokens, const GptOptions& options) {
  const Tables tables(scope, options);
  const Tensor x = blocks(scope, embedded(tables, tokens), options,
                          [&](const Scope&, Tensor q, Tensor k, Tensor v) { return causal(q, k, v, options); });
  return head(scope, x, tables);
}

Tensor gpt_prompt(const Scope& scope, const GptPrompt& prompt, const GptOptions& options) {
  const Tables tables(scope, options);
  const auto attend = [&](const Scope& layer, Tensor q, Tensor k, Tensor v) {
    cached(layer, "keys", split_heads(k, options.heads), prompt.first, options.positions);
    cached(layer, "values", split_heads(v, options.heads), prompt.first, options.positions);
    return causal(q, k, v, options);
  };
  const Tensor x = blocks(scope, embedded(tables, prompt.tokens), options, attend);
  return head(scope, embedding(reshape(x, {-1, options.width}), prompt.last), tables);
}

Tensor gpt_next(const Scope& scope, const GptNext& next, const GptOptions& options) {
  const Tables tables(scope, options);
  const std::int64_t n = next.tokens.dim(0);
  const auto attend = [&](const Scope& layer, Tensor q, Tensor k, Tensor v) {
    const Tensor keys = cached(layer, "keys", split_heads(k, options.heads), next.positions, options.positions);
    const Tensor values = cached(layer, "values", split_heads(v, options.heads), next.positions, options.positions);
    return join_heads(attention(split_heads(q, options.heads), keys, values, {.key_lengths = next.lengths}));
  };
  const Tensor x = add(embedding(tables.tokens, next.tokens), embedding(tables.positions, next.positions));
  const Tensor y = blocks(scope, reshape(x, {n, 1, options.width}), options, attend);
  return head(scope, reshape(y, {n, options.width}), tables);
}

}  // namespace halfstep::models
