#pragma once

#include <halfstep/graph.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

/// What a state becomes with every update of the weights.
struct Update {
  ValueId state;
  ValueId next;
};

/// What the types of a graph's values mean.
enum class Types : std::uint8_t {
  written,  ///< operators may be given two floating types, and work in the wider; a policy has the last word
  settled,  ///< as the precision pass leaves them: each is what the value is computed and stored in
};

/// A graph in the order it was built, which is an order it can run in.
struct Ir : std::enable_shared_from_this<Ir> {
  Ir() = default;
  explicit Ir(Types meaning) : types(meaning) {}

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Update> updates;  ///< at most one for each state
  Types types = Types::written;

  ValueId add_value(Value value);
  /// The value's handle. It shares ownership of the graph where the graph is shared at all, as a Graph's is; a handle
  /// on a graph that a pass holds by value is valid as long as that.
  Tensor tensor(ValueId id);
  /// Values of one origin, in the order they were made.
  std::vector<ValueId> of(Origin origin) const;
  /// Says why the nodes from `first` on work in their types, and what scope those belong to that use no parameter;
  /// their values are named accordingly.
  void attribute(NodeId first, std::string_view scope, std::string_view why);
};

/// to_string(const Graph&) of what the graph is made of.
std::string text_of(const Ir& ir);

/// The engine's side of the handles that users hold.
struct Access {
  /// The graph of `tensor`. Throws Error where it was never set.
  static Ir& ir(const Tensor& tensor);
  static Tensor tensor(std::shared_ptr<Ir> ir, ValueId id) { return {std::move(ir), id}; }
  /// A Graph whose values are those of `ir`.
  static Graph graph(std::shared_ptr<Ir> ir);
};

/// Access::ir, for short.
inline Ir& ir_of(const Tensor& tensor) {
  return Access::ir(tensor);
}

}  // namespace halfstep::graph
