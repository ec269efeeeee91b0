#include "c/handles.h"
#include "models/bert.h"
#include "models/by_name.h"
#include "models/gpt.h"
#include "models/mlp.h"

using namespace halfstep;
using namespace halfstep::c;

namespace {

models::GptOptions gpt_options(const hs_transformer_options* given) {
  const hs_transformer_options read = c::read(given, "gpt");
  if (read.hidden != 0 || read.token_types != 0) {
    fail("gpt", "expected neither hidden nor token_types, which are BERT's, got some");
  }
  models::GptOptions options;
  options.layers = number_or(read.layers, options.layers);
  options.heads = number_or(read.heads, options.heads);
  options.width = number_or(read.width, options.width);
  options.positions = number_or(read.positions, options.positions);
  options.vocabulary = number_or(read.vocabulary, options.vocabulary);
  options.dropout = number_or(read.dropout, options.dropout);
  return options;
}

models::BertOptions bert_options(const hs_transformer_options* given) {
  const hs_transformer_options read = c::read(given, "bert");
  models::BertOptions options;
  options.layers = number_or(read.layers, options.layers);
  options.heads = number_or(read.heads, options.heads);
  options.width = number_or(read.width, options.width);
  options.hidden = number_or(read.hidden, 4 * options.width);
  options.positions = number_or(read.positions, options.positions);
  options.vocabulary = number_or(read.vocabulary, options.vocabulary);
  options.token_types = number_or(read.token_types, options.token_types);
  options.dropout = number_or(read.dropout, options.dropout);
  return options;
}

}  // namespace

hs_tensor hs_image_model(hs_graph* graph, const char* path, const char* name, hs_tensor images, int64_t classes) {
  return added(graph, [&](hs_graph& g) {
    return models::image_model(scope_of(*g.graph, text_or(path, "")), tensor_of(g, images),
                               text(name, "a model's name"), classes);
  });
}

hs_tensor hs_mlp(hs_graph* graph, const char* path, hs_tensor x, const int64_t* widths, size_t count, int64_t classes) {
  return added(graph, [&](hs_graph& g) {
    return models::mlp(scope_of(*g.graph, text_or(path, "")), tensor_of(g, x), list(widths, count, "widths"), classes);
  });
}

hs_tensor hs_gpt(hs_graph* graph, const char* path, hs_tensor tokens, const hs_transformer_options* options) {
  return added(graph, [&](hs_graph& g) {
    return models::gpt(scope_of(*g.graph, text_or(path, "")), tensor_of(g, tokens), gpt_options(options));
  });
}

hs_tensor hs_bert_classifier(hs_graph* graph, const char* path, hs_tensor tokens, hs_tensor lengths, hs_tensor types,
                             int64_t classes, const hs_transformer_options* options) {
  return added(graph, [&](hs_graph& g) {
    models::BertInputs inputs{.tokens = tensor_of(g, tokens)};
    inputs.lengths = optional_tensor_of(g, lengths);
    inputs.types = optional_tensor_of(g, types);
    return models::bert_classifier(scope_of(*g.graph, text_or(path, "")), inputs, classes, bert_options(options));
  });
}
