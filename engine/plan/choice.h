#pragma once

#include <halfstep/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace halfstep::plan {

class Lowering;

/// A piece of a program by itself, to be timed, or checked where its result is known.
struct Trial {
  std::vector<TensorType> inputs;
  std::vector<std::vector<float>> values;  ///< of each input; any where empty
  TensorType output;
  std::vector<float> expected;    ///< the output; not known where empty
  double allowed_difference = 0;  ///< from it
  bool float16_partials = false;
  std::function<void(Lowering&)> lower;
};

/// A way to compute something.
struct Candidate {
  std::string name;
  bool risky = false;  ///< has been known to crash drivers: the first run belongs into a process of its own
};

/// What an operator left open: several ways to compute the same, of which it took the one that Target::choices names,
/// else the first. All of them are to give right results, but a driver may spoil one.
struct Choice {
  std::string key;                    ///< the same for the same problem: "gemm row_row f16 f32 1024x1024x1024"
  std::string kind;                   ///< the same for problems that the same checks stand for: "gemm row_row f16 f32"
  std::vector<Candidate> candidates;  ///< the one expected to be fastest first
  bool rule_is_known = false;         ///< to be right: measured on all such devices by who wrote it
  double flops = 0;
  Trial problem;
};

}  // namespace halfstep::plan
