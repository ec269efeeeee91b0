#pragma once

#include <halfstep/graph.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/operator.h"

namespace halfstep::graph {

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;

/// Most elements of a tensor. Its bytes, with the padding of its rows, are then a number that std::int64_t holds.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 56;

/// Throws Error "[where] expected ... for `what`, got the shape" unless all extents of `shape` are positive and it has
/// no more than most_elements.
void check_extents(std::string_view where, std::string_view what, const Shape& shape);

struct Ir;

/// Throws Error "[where] expected `what`, ..." unless `value` is one of `ir`.
void expect_value(std::string_view where, std::string_view what, const Ir& ir, Tensor value,
                  std::string_view hint = {});

/// Where a value comes from.
enum class Origin : std::uint8_t {
  input,      ///< fed each step
  parameter,  ///< trained
  state,      ///< kept from step to step, such as running statistics and the loss scale
  node,       ///< computed by an operator
};

struct Value {
  TensorType type;
  std::string name;
  Origin origin = Origin::node;
  NodeId producer = 0;      ///< where origin is node
  Initializer initializer;  ///< where origin is parameter or state
  Axes stored{};            ///< likewise: see Scope::parameter
};

/// One application of an operator.
struct Node {
  std::shared_ptr<const Operator> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string scope;   ///< path of the scope whose parameter it uses; empty where it uses none
  std::string why;     ///< what decided on the type it works in, for people
  bool again = false;  ///< computes for the backward pass what the forward pass did not keep
};

/// What the operators applied from here on have in common.
struct Setting {
  std::string scope;  ///< of those that use no parameter
  std::string why;
};

/// What a state becomes with every update of the weights.
struct Update {
  ValueId state;
  ValueId next;
};

/// A graph in the order it was built, which is an order it can run in.
struct Ir {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Update> updates;  ///< at most one for each state
  Setting setting;
  /// Whether types are final, as the precision pass leaves them. Until then operators may be given two floating types,
  /// and count as working in the wider; the policy has the last word.
  bool settled = false;
  ValueId add_value(Value value);
  Tensor tensor(ValueId id) { return {this, id}; }
  /// Values of one origin, in the order they were made.
  std::vector<ValueId> of(Origin origin) const;
};

}  // namespace halfstep::graph
