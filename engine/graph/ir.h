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

/// The largest number of elements of a tensor. Its byte size, with row padding, then fits in std::int64_t.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 56;

/// Throws Error "[where] expected ... for `what`, got the shape" unless all extents of `shape` are positive and it has
/// no more than most_elements.
void check_extents(std::string_view where, std::string_view what, const Shape& shape);

struct Ir;

/// Throws Error "[where] expected `what`, ..." unless `value` belongs to `ir`.
void expect_value(std::string_view where, std::string_view what, const Ir& ir, Tensor value,
                  std::string_view hint = {});

/// How a value is defined.
enum class Origin : std::uint8_t {
  input,      ///< new in each step
  parameter,  ///< trained
  state,      ///< kept from step to step, such as running statistics and the loss scale
  cache,      ///< kept by a predictor from run to run
  node,       ///< computed by an operator
};

struct Value {
  TensorType type;
  std::string name;
  Origin origin = Origin::node;
  NodeId producer = 0;      ///< if origin is node
  Initializer initializer;  ///< if origin is parameter or state
  Axes stored{};            ///< likewise: see Scope::parameter
};

/// One application of an operator.
struct Node {
  std::shared_ptr<const Operator> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string scope;        ///< the first of Ir::scopes(); empty if there are none
  std::string why;          ///< the reason for the type it computes in, for display
  bool recomputed = false;  ///< recomputes, for the backward pass, a value that the forward pass did not keep
};

/// The next value of a state, assigned with every update of the weights; or of a cache, assigned in every run.
struct Update {
  ValueId state;
  ValueId next;
};

/// How the types of a graph's values are to be read.
enum class Types : std::uint8_t {
  written,  ///< by the user: operators may have inputs of two floating types and use the wider; the policy decides
  settled,  ///< by the precision pass: each is the type in which the value is computed and stored
};

/// A graph; its nodes are in a valid order of execution.
struct Ir : std::enable_shared_from_this<Ir> {
  Ir() = default;
  explicit Ir(Types meaning) : types(meaning) {}

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Update> updates;  ///< at most one for each state
  Types types = Types::written;

  ValueId add_value(Value value);
  /// The value's handle. It shares ownership of the graph if the graph itself is shared, as a Graph's is. A handle to a
  /// graph that a pass holds by value is valid as long as that graph.
  Tensor tensor(ValueId id);
  /// Values of one origin, in order of creation.
  std::vector<ValueId> of(Origin origin) const;
  /// The paths of the scopes whose parameters an operator of these inputs uses: "conv1" of "conv1/weight". The first
  /// input is what it works on, and counts only where no other one is a parameter.
  std::vector<std::string> scopes(std::span<const ValueId> inputs) const;
  /// Sets, for the nodes from `first` on, the reason for their types, and the scope of those that use no parameter.
  /// Their values are named accordingly.
  void attribute(NodeId first, std::string_view scope, std::string_view why);
};

/// Implements to_string(const Graph&).
std::string text_of(const Ir& ir);

/// Gives the engine access to the internals of public handles.
struct Access {
  /// The graph of `tensor`. Throws Error if the tensor is undefined.
  static Ir& ir(const Tensor& tensor);
  static Tensor tensor(std::shared_ptr<Ir> ir, ValueId id) { return {std::move(ir), id}; }
  /// A Graph with the contents `ir`.
  static Graph graph(std::shared_ptr<Ir> ir);
  /// Another Graph with the same contents, which both own.
  static Graph share(const Graph& graph);
};

/// Access::ir, for short.
inline Ir& ir_of(const Tensor& tensor) {
  return Access::ir(tensor);
}

}  // namespace halfstep::graph
