#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "step/execution.h"

namespace halfstep::testing {

/// What a check of harness/check.h found of one output: its element that is the most units in the last place from the
/// reference.
struct Comparison {
  std::string check;
  std::string what;  ///< "result" or "gradient of input 0"
  DType dtype = DType::f32;
  std::size_t wrong = 0;  ///< how many elements differ by more than is allowed
  double share = 0;       ///< the largest error, in parts of what is allowed
  double ulps = 0;
  double got = 0;
  double want = 0;
  std::size_t index = 0;
  std::string inputs{};  ///< those of as many elements, at the index; empty if there are none
};

/// The run that an output is of, and what its elements should be.
struct ObservedRun {
  step::Execution& execution;
  graph::ValueId output;
  const TensorType& type;
  const std::vector<double>& want;
  std::vector<double> allowed;  ///< how far each may be off
};

using Observer = std::function<void(const Comparison&, const ObservedRun&)>;

/// Calls `observer` for each output that a check compares from now on.
void observe(Observer observer);

}  // namespace halfstep::testing
