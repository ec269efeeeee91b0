#pragma once

#include <halfstep/graph.h>

#include <span>

namespace halfstep::models {

/// Dense layers of the widths in `hidden`, each with a ReLU, then one of `classes`. With an empty `hidden` the model is
/// linear. x {n, ...} is flattened; returns logits {n, classes}.
HALFSTEP_API Tensor mlp(const Scope& scope, Tensor x, std::span<const std::int64_t> hidden, std::int64_t classes = 10);

}  // namespace halfstep::models
