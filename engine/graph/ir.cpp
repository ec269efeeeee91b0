#include "graph/ir.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/held.h"

namespace halfstep::graph {

void check_extents(std::string_view where, std::string_view what, const Shape& shape) {
  std::int64_t room = most_elements;
  for (const std::int64_t extent : shape) {
    if (extent < 1) fail(where, fmt::format("expected positive extents for {}, got {}", what, to_string(shape)));
    if (extent > room) {
      fail(where, fmt::format("expected at most 2^56 elements for {}, got {}", what, to_string(shape)));
    }
    room /= extent;
  }
}

void expect_value(std::string_view where, std::string_view what, const Ir& ir, Tensor value, std::string_view hint) {
  if (!value.defined()) fail(where, fmt::format("expected {}, got a tensor that was never set", what), hint);
  if (&ir_of(value) != &ir)
    fail(where, fmt::format("expected {} of the graph, got '{}' of another", what, value.name()));
}

ValueId Ir::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

Tensor Ir::tensor(ValueId id) {
  std::shared_ptr<Ir> owner = weak_from_this().lock();
  if (owner == nullptr) owner = std::shared_ptr<Ir>(std::shared_ptr<Ir>(), this);
  return Access::tensor(std::move(owner), id);
}

std::vector<ValueId> Ir::of(Origin origin) const {
  std::vector<ValueId> found;
  for (ValueId id = 0; id < values.size(); ++id) {
    if (values[id].origin == origin) found.push_back(id);
  }
  return found;
}

Gradients Operator::vjp(const Vjp&) const {
  fail(name(), "expected an operator with a gradient on the way from a parameter to the loss, got one without",
       "metrics such as accuracy cannot be trained on");
}

std::optional<Tensor> Operator::inference(std::span<const Tensor>) const {
  return std::nullopt;
}

std::optional<Tensor> Operator::with_affine(std::span<const Tensor>, Tensor, Tensor) const {
  return std::nullopt;
}

std::optional<Tensor> Operator::in_float8(std::span<const Tensor>) const {
  return {};
}

namespace {

/// Throws Error unless the tensors are values of one graph.
void check_inputs(const Operator& op, std::span<const Tensor> inputs) {
  if (inputs.empty()) fail(op.name(), "expected at least one tensor, got none");
  for (const Tensor& input : inputs) {
    if (!input.defined()) fail(op.name(), "expected values of a graph, got a tensor that was never set");
    if (&ir_of(input) == &ir_of(inputs.front())) continue;
    fail(op.name(), fmt::format("expected tensors of one graph, got '{}' of another", input.name()));
  }
}

/// The floating types among `types` made one: f32 where they differ, but for states, which are f32 always.
void widen(const Ir& ir, std::span<const Tensor> inputs, std::vector<TensorType>& types) {
  std::optional<DType> first;
  bool alike = true;
  for (const Tensor& input : inputs) {
    if (!is_floating(input.dtype()) || ir.values[input.id()].origin == Origin::state) continue;
    alike = alike && first.value_or(input.dtype()) == input.dtype();
    first = input.dtype();
  }
  if (alike) return;
  for (TensorType& type : types) {
    if (is_narrow(type.dtype)) type.dtype = DType::f32;
  }
}

/// "scope/operator:3", and "scope/operator:3.1" for the second result: names key noise, so they differ.
std::string result_name(const Node& node, NodeId id, std::size_t result) {
  return fmt::format("{}{}{}:{}{}", node.scope, node.scope.empty() ? "" : "/", node.op->name(), id,
                     result == 0 ? "" : fmt::format(".{}", result));
}

}  // namespace

std::vector<std::string> Ir::scopes(std::span<const ValueId> inputs) const {
  std::vector<std::string> found;
  const auto add = [&](ValueId id) {
    if (values[id].origin != Origin::parameter) return;
    const std::size_t slash = values[id].name.rfind('/');
    std::string scope = slash == std::string::npos ? "" : values[id].name.substr(0, slash);
    if (std::ranges::find(found, scope) == found.end()) found.push_back(std::move(scope));
  };
  for (const ValueId id : inputs.subspan(1)) add(id);
  if (found.empty()) add(inputs.front());
  return found;
}

void Ir::attribute(NodeId first, std::string_view scope, std::string_view why) {
  for (NodeId id = first; id < nodes.size(); ++id) {
    Node& node = nodes[id];
    node.why = why;
    if (!node.scope.empty()) continue;
    node.scope = scope;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) values[node.outputs[i]].name = result_name(node, id, i);
  }
}

Ir& Access::ir(const Tensor& tensor) {
  if (!tensor.defined()) fail("tensor", "expected a value of a graph, got a tensor that was never set");
  return *tensor.ir_;
}

Graph Access::graph(std::shared_ptr<Ir> ir) {
  return Graph(std::move(ir));
}
Graph Access::share(const Graph& graph) {
  return Graph(held(graph.ir_, "graph", "a graph").shared_from_this());
}

std::string_view name(Numerics numerics) {
  switch (numerics) {
    case Numerics::product:
      return "products";
    case Numerics::pair:
      return "pairs";
    case Numerics::reduction:
      return "reductions";
    case Numerics::norm:
      return "norms";
    case Numerics::other:
      return "others";
    case Numerics::as_is:
      return "as is";
  }
  return "?";
}

std::vector<Tensor> apply(std::shared_ptr<const Operator> op, std::span<const Tensor> inputs) {
  check_inputs(*op, inputs);
  Ir& ir = ir_of(inputs.front());
  std::vector<TensorType> types;
  Node node{std::move(op), {}, {}, {}, {}};
  for (const Tensor& input : inputs) {
    types.push_back(input.type());
    node.inputs.push_back(input.id());
  }
  if (const std::vector<std::string> scopes = ir.scopes(node.inputs); !scopes.empty()) node.scope = scopes.front();
  if (ir.types == Types::written && node.op->numerics() != Numerics::as_is) widen(ir, inputs, types);
  const std::vector<TensorType> results = node.op->infer(types);
  for (const TensorType& type : results) check_extents(node.op->name(), "a result", type.shape);
  const auto id = static_cast<NodeId>(ir.nodes.size());
  std::vector<Tensor> outputs;
  for (const TensorType& type : results) {
    node.outputs.push_back(ir.add_value({type, result_name(node, id, outputs.size()), Origin::node, id, {}}));
    outputs.push_back(ir.tensor(node.outputs.back()));
  }
  ir.nodes.push_back(std::move(node));
  return outputs;
}

Tensor apply_one(std::shared_ptr<const Operator> op, std::span<const Tensor> inputs) {
  return apply(std::move(op), inputs).front();
}

}  // namespace halfstep::graph
