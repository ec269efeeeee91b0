#pragma once

#include <halfstep/graph.h>

#include <optional>
#include <string>
#include <vector>

namespace halfstep::models {

/// The shape of a BERT. The defaults are BERT-base's, with the vocabulary of the uncased model.
struct BertOptions {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t hidden = 3072;    ///< of the feed-forward layers
  std::int64_t positions = 512;  ///< that are learned; sequences may be shorter
  std::int64_t vocabulary = 30522;
  std::int64_t token_types = 2;
  float dropout = 0.1F;  ///< of embeddings, attention and what each layer adds
};

/// Several texts one after another in each row of tokens, so that nothing is padded. What is left of a row is a text of
/// its own, whose result nothing uses.
struct BertPacking {
  Tensor segments;   ///< u32 {n, t}: a number for each text, which does not decrease along a row
  Tensor positions;  ///< u32 {n, t}: of each token in its text, from 0
  Tensor firsts;     ///< u32 {m}: the first token of each text that is classified, counted over all n t
};

/// What BERT reads: u32 tokens {n, t}; the length u32 {n} of each sequence, from which on tokens are padding (all are
/// read where there are no lengths); the type u32 {n, t} of each token (0 where there are none).
struct BertInputs {
  Tensor tokens;
  std::optional<Tensor> lengths{};
  std::optional<Tensor> types{};
  std::optional<BertPacking> packing{};  ///< instead of lengths
};

/// BERT's encoder (Devlin et al. 2019): {n, t, width}. Names and axes in files are those of BertModel in Hugging Face's
/// transformers: "embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight". A block is the
/// scope "encoder/layer/i", for TrainerOptions::recompute. Throws Error if there are more tokens than positions, the
/// width is no multiple of the heads, or there is no layer.
HALFSTEP_API Tensor bert(const Scope& scope, const BertInputs& inputs, const BertOptions& options = {});

/// The first token's vector through a dense layer and tanh, "pooler" in `scope`: {n, width} of an encoder's {n, t,
/// width}; or {m, width} of the tokens `firsts`, see BertPacking.
HALFSTEP_API Tensor bert_pooler(const Scope& scope, Tensor encoded, const std::optional<Tensor>& firsts = {});

/// Logits {n, classes} of a sequence, or {m, classes} of packed texts: the encoder and pooler in the scope "bert", and
/// a dense layer "classifier", as in BertForSequenceClassification.
HALFSTEP_API Tensor bert_classifier(const Scope& scope, const BertInputs& inputs, std::int64_t classes,
                                    const BertOptions& options = {});

/// Other names that files have for a tensor of bert_classifier(), for LoadOptions::other_names: norms' "gamma" and
/// "beta", as in bert-base-uncased, and no "bert." before the encoder's, as BertModel saves them.
HALFSTEP_API std::vector<std::string> bert_other_names(const std::string& name);

}  // namespace halfstep::models
