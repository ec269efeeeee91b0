#include "models/bert.h"

#include <string>
#include <string_view>
#include <utility>

#include "models/transformer.h"

namespace halfstep::models {
namespace {

constexpr float epsilon = 1e-12F;

Tensor projection(const Scope& scope, Tensor x, std::int64_t units) {
  return dense(scope, x, units, normal(0.02F));
}

/// Adds a layer's result to its input, and normalises the sum.
Tensor added(const Scope& scope, Tensor result, Tensor x, const BertOptions& options) {
  const Tensor y = dropout(projection(scope / "dense", result, options.width), options.dropout);
  return layer_norm(scope / "LayerNorm", add(y, x), epsilon);
}

Tensor embeddings(const Scope& scope, const BertInputs& inputs, const BertOptions& options) {
  const Tensor words = embedding_table(scope / "word_embeddings", options.vocabulary, options.width);
  const Tensor positions = embedding_table(scope / "position_embeddings", options.positions, options.width);
  const Tensor types = embedding_table(scope / "token_type_embeddings", options.token_types, options.width);
  const Tensor places = inputs.packing ? embedding(positions, inputs.packing->positions)
                                       : learned_positions("bert", positions, inputs.tokens.dim(1));
  Tensor x = add(embedding(words, inputs.tokens), places);
  x = add(x, inputs.types ? embedding(types, *inputs.types) : slice(types, {0, 0}, {1, options.width}));
  return dropout(layer_norm(scope / "LayerNorm", x, epsilon), options.dropout);
}

Tensor block(const Scope& scope, Tensor x, const BertInputs& inputs, const BertOptions& options) {
  const Scope own = scope / "attention" / "self";
  const auto part = [&](const char* name) { return projection(own / name, x, options.width); };
  AttentionOptions visible{.key_lengths = inputs.lengths, .dropout = options.dropout};
  if (inputs.packing) visible.segments = inputs.packing->segments;
  // One after the other: the order in which parameters are made decides what they begin as, and C++ leaves that of
  // arguments open.
  const Tensor value = part("value");
  const Tensor key = part("key");
  const Tensor query = part("query");
  const Tensor heads = attention_by_head(query, key, value, options.heads, visible);
  const Tensor attended = added(scope / "attention" / "output", heads, x, options);
  const Tensor hidden = gelu(projection(scope / "intermediate" / "dense", attended, options.hidden));
  return added(scope / "output", hidden, attended, options);
}

}  // namespace

Tensor bert(const Scope& scope, const BertInputs& inputs, const BertOptions& options) {
  check_layers("bert", options.layers);
  Tensor x = embeddings(scope / "embeddings", inputs, options);
  for (std::int64_t i = 0; i < options.layers; i++) {
    x = block(scope / "encoder" / "layer" / std::to_string(i), x, inputs, options);
  }
  return x;
}

Tensor bert_pooler(const Scope& scope, Tensor encoded, const std::optional<Tensor>& firsts) {
  const std::int64_t width = encoded.dim(2);
  const Tensor first = firsts ? embedding(reshape(encoded, {-1, width}), *firsts)
                              : reshape(slice(encoded, {0, 0, 0}, {encoded.dim(0), 1, width}), {encoded.dim(0), width});
  return tanh(projection(scope / "pooler" / "dense", first, width));
}

Tensor bert_classifier(const Scope& scope, const BertInputs& inputs, std::int64_t classes, const BertOptions& options) {
  std::optional<Tensor> firsts;
  if (inputs.packing) firsts = inputs.packing->firsts;
  const Tensor pooled = bert_pooler(scope / "bert", bert(scope / "bert", inputs, options), firsts);
  return projection(scope / "classifier", dropout(pooled, options.dropout), classes);
}

std::vector<std::string> bert_other_names(const std::string& name) {
  constexpr std::string_view prefix = "bert.";
  std::vector<std::string> names;
  const std::pair<std::string_view, std::string_view> older[] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                                 {"LayerNorm.bias", "LayerNorm.beta"}};
  for (const auto& [now, then] : older) {
    if (name.ends_with(now)) names.push_back(name.substr(0, name.size() - now.size()).append(then));
  }
  if (!name.starts_with(prefix)) return names;
  for (const std::string& other : std::vector(names)) names.push_back(other.substr(prefix.size()));
  names.push_back(name.substr(prefix.size()));
  return names;
}

}  // namespace halfstep::models
