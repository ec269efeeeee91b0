#pragma once

#include "models/layers.h"

/// What the transformers have in common.
namespace halfstep::models {

/// A table {rows, width} of learned vectors, named "weight" in `scope`, initially normal with std 0.02 (GPT-2's and
/// BERT's).
HALFSTEP_API Tensor embedding_table(const Scope& scope, std::int64_t rows, std::int64_t width);

/// Layer norm of x {..., c}, with "weight" (initially 1) and "bias" (initially 0).
HALFSTEP_API Tensor layer_norm(const Scope& scope, Tensor x, float epsilon);

/// {n, t, heads * c} as {n, heads, t, c}. Throws Error if the width is no multiple of the heads.
HALFSTEP_API Tensor split_heads(Tensor x, std::int64_t heads);
/// {n, heads, t, c} as {n, t, heads * c}.
HALFSTEP_API Tensor join_heads(Tensor x);

/// Attention of queries, keys and values {n, t, width} in `heads` heads: {n, t, width}. Throws Error if the width is no
/// multiple of the heads.
HALFSTEP_API Tensor attention_by_head(Tensor q, Tensor k, Tensor v, std::int64_t heads,
                                      const AttentionOptions& options);

/// Throws Error that names the model unless there is a layer.
HALFSTEP_API void check_layers(const char* model, std::int64_t layers);

/// The first `count` rows of a table of learned positions. Throws Error if it has fewer.
HALFSTEP_API Tensor learned_positions(const char* model, Tensor table, std::int64_t count);

}  // namespace halfstep::models
