#pragma once

#include <halfstep/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace halfstep::plan {

class Lowering;

/// A separate small program, to be timed, or to be checked if its result is known.
struct Trial {
  std::vector<TensorType> inputs;
  std::vector<std::vector<float>> values;  ///< of each input; arbitrary if empty
  TensorType output;
  std::vector<float> expected;    ///< the output; unknown if empty
  double allowed_difference = 0;  ///< from `expected`
  bool float16_partials = false;
  std::function<void(Lowering&)> lower;
};

/// One way to compute something.
struct Candidate {
  std::string name;
  bool risky = false;  ///< has crashed drivers: its first run must be in a separate process
};

/// A choice that an operator left open between several ways to compute the same. The operator used the one that
/// Target::choices names, else the first. All should give correct results, but a driver may break one.
struct Choice {
  std::string key;                    ///< equal for equal problems: "gemm row_row f16 f32 1024x1024x1024"
  std::string kind;                   ///< equal for problems that share the same checks: "gemm row_row f16 f32"
  std::vector<Candidate> candidates;  ///< the one expected to be fastest comes first
  bool rule_is_known = false;         ///< the rule is known to be right: measured on all such devices
  double flops = 0;
  Trial problem;
};

}  // namespace halfstep::plan
