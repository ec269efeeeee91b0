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
/// Throws Error if there are more tokens than positions, or if the width is no multiple of the heads.
HALFSTEP_API Tensor gpt(const Scope& scope, Tensor tokens, const GptOptions& options = {});

}  // namespace halfstep::models
