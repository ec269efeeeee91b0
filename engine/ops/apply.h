#pragma once

#include <halfstep/tensor.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "graph/operator.h"

namespace halfstep::ops {

/// Applies a new operator Op(arguments...) with one output.
template <typename Op, typename... Arguments>
Tensor apply(std::initializer_list<Tensor> inputs, Arguments&&... arguments) {
  return graph::apply_one(std::make_shared<Op>(std::forward<Arguments>(arguments)...),
                          std::span<const Tensor>(inputs.begin(), inputs.size()));
}

}  // namespace halfstep::ops
