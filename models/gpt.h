#pragma once

#include <halfstep/graph.h>

namespace halfstep::models {

/// The shape of a GPT. The defaults are the smallest GPT-2's.
struct GptOptions {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t positions = 1024;  ///< that are learned; sequences may be shorter
  std::int64_t vocabulary = 50257;
  float dropout = 0.1F;  ///< of embeddings, attention and what each layer adds
};

/// GPT-2 (Radford et al. 2019): the logits {n, t, vocabulary} of the token after each of u32 tokens {n, t}. The last
/// product's weight is the table of tokens. Names and axes in files are those of GPT2Model in Hugging Face's
/// transformers: "wte.weight", "h.0.attn.c_attn.weight". A block is the scope "h/i", for TrainerOptions::recompute.
/// Throws Error if there are more tokens than positions, the width is no multiple of the heads, or there is no layer.
HALFSTEP_API Tensor gpt(const Scope& scope, Tensor tokens, const GptOptions& options = {});

/// The inputs of a run that keeps the keys and values of every layer in caches {n, heads, positions, c}, for the runs
/// that follow: see Scope::cache. Both functions below have the parameters and the caches of the same names, so that
/// Predictors of graphs with either can share them. Each token costs one run of gpt_next, however long the text is.
struct GptPrompt {
  Tensor tokens;  ///< u32 {n, t}: the first tokens of each text, then any tokens of the vocabulary, or ignored_label
  /// u32 {n}: 0 stores the keys and values of a text; GptOptions::positions leaves the caches of that text as they are.
  Tensor first;
  Tensor last;  ///< u32 {n}: the last token of each text, counted over all tokens: i t + length - 1 of text i
};
/// The logits {n, vocabulary} of the token after each text. Throws as gpt() does.
HALFSTEP_API Tensor gpt_prompt(const Scope& scope, const GptPrompt& prompt, const GptOptions& options = {});

struct GptNext {
  Tensor tokens;     ///< u32 {n}: the next of each text
  Tensor positions;  ///< u32 {n}: where they are in it, counted from 0; below GptOptions::positions
  Tensor lengths;    ///< u32 {n}: the tokens that they see, themselves included: positions + 1
};
/// The logits {n, vocabulary} of the token after these, from the caches. Throws as gpt() does.
HALFSTEP_API Tensor gpt_next(const Scope& scope, const GptNext& next, const GptOptions& options = {});

}  // namespace halfstep::models
