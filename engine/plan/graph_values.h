#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "plan/dispatch.h"

namespace halfstep::plan {

/// The noise stream of a tensor: a hash of its name, so that it does not depend on the other tensors of the program,
/// and of the index of the graph, or its repetition, that computes it.
std::uint32_t noise_stream(std::string_view tensor, std::uint32_t run = 0);

/// The tensors of a graph's values, while it is lowered.
class GraphValues {
 public:
  /// Assigns a tensor to a value; a value that a node computes need not be bound.
  void bind(graph::ValueId value, TensorId tensor) { bound_[value] = tensor; }
  bool is_bound(graph::ValueId value) const { return bound_.contains(value); }
  /// The tensor of a value that was bound or lowered. Throws Error where there is none.
  TensorId tensor_of(const graph::Ir& ir, graph::ValueId value) const;
  /// Whether an operator reads the moments of a value's channels, as it is or cast.
  bool moments_wanted(const graph::Ir& ir, graph::ValueId value);
  /// Begins another repetition of the same graph: its nodes are lowered again, with new tensors and their own noise.
  void repeat(const graph::Ir& ir);
  /// Numbers the repetition, where other processes compute those before it: its noise is that repetition's.
  void number(std::uint32_t run) { run_ = run; }
  /// Begins another graph: no value of it is bound, and its noise is its own.
  void begin_graph() {
    ++run_;
    bound_.clear();
    moments_wanted_.clear();
  }
  /// Those of a graph that is part of an operator of this one: none is bound, and its noise is that operator's.
  GraphValues part() const {
    GraphValues part;
    part.run_ = run_;
    return part;
  }
  /// The noise stream for `what` in this repetition or graph.
  std::uint32_t stream_of(std::string_view what) const { return noise_stream(what, run_); }

 private:
  std::uint32_t run_ = 0;  ///< counts repetitions and graphs
  std::map<graph::ValueId, TensorId> bound_;
  std::vector<bool> moments_wanted_;  ///< of each value, once it was asked for
};

}  // namespace halfstep::plan
