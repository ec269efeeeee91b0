#include "passes/precision.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace halfstep::passes {

using graph::Ir;
using graph::Node;
using graph::NodeId;
using graph::Numerics;
using graph::Origin;
using graph::Update;
using graph::Value;
using graph::ValueId;

namespace {

/// What decides on an operator's type, and why.
struct Decision {
  Compute compute = widest;
  std::string why;
};

Compute on_list(const Lists& lists, Numerics numerics) {
  switch (numerics) {
    case Numerics::product:
      return lists.products;
    case Numerics::pair:
      return lists.pairs;
    case Numerics::reduction:
      return lists.reductions;
    case Numerics::norm:
      return lists.norms;
    case Numerics::other:
      return lists.others;
    case Numerics::as_is:
      break;
  }
  return widest;
}

/// Whether an operator takes a value in the type that the value has: a state, of one that keeps states.
bool keeps(const Node& node, const Value& value) {
  return value.origin == Origin::state && node.op->keeps_states();
}

/// For each operator, whether it is on a way from a state to the next value of one: the next value is often the state
/// with a little more, which a narrow type would lose at any point. No way leads through a product.
std::vector<bool> on_way_to_next_state(const Ir& written) {
  const auto passes_on = [](const Node& node) {
    return node.op->numerics() != Numerics::product && !node.op->keeps_states();
  };
  std::vector<bool> from_state(written.values.size());
  std::vector<bool> to_next(written.values.size());
  for (ValueId id = 0; id < written.values.size(); ++id) from_state[id] = written.values[id].origin == Origin::state;
  for (const Update& update : written.updates) to_next[update.next] = true;
  const auto any_of = [](const std::vector<ValueId>& ids, const std::vector<bool>& marked) {
    return std::ranges::any_of(ids, [&](ValueId id) { return marked[id]; });
  };
  for (const Node& node : written.nodes) {
    if (!passes_on(node) || !any_of(node.inputs, from_state)) continue;
    for (const ValueId id : node.outputs) from_state[id] = true;
  }
  std::vector<bool> result(written.nodes.size());
  for (std::size_t i = written.nodes.size(); i-- > 0;) {
    const Node& node = written.nodes[i];
    if (!passes_on(node) || !any_of(node.outputs, to_next)) continue;
    for (const ValueId id : node.inputs) to_next[id] = true;
    result[i] = any_of(node.inputs, from_state);
  }
  return result;
}

/// By layer, for the parameters in one scope; none if no pattern is for that.
std::optional<Decision> of_layer(const Precision& precision, const std::string& scope) {
  for (const auto& [pattern, dtype] : precision.layers) {
    if (!scope.empty() && matches(pattern, scope)) return Decision{dtype, fmt::format("layer '{}'", pattern)};
  }
  return {};
}

/// By operator, else by list. What is computed of a state is as precise as that.
Decision of_operator(const Precision& precision, const Ir& written, const Node& node, bool on_way) {
  const auto by_name = precision.operators.find(node.op->name());
  if (by_name != precision.operators.end()) {
    return {by_name->second, fmt::format("operator '{}' of the policy", by_name->first)};
  }
  const auto is_state = [&](ValueId input) { return written.values[input].origin == Origin::state; };
  if (!node.op->keeps_states() && std::ranges::any_of(node.inputs, is_state)) return {DType::f32, "reads a state"};
  if (on_way) return {DType::f32, "is on the way to a state's next value"};
  return {on_list(precision.lists, node.op->numerics()),
          fmt::format("{}: {}", precision.name, name(node.op->numerics()))};
}

std::string text_of(const Decision& decision) {
  return fmt::format("{} ({})", decision.compute ? name(*decision.compute) : "the widest of its inputs", decision.why);
}

/// Overrides by layer come first. Those of an operator with parameters in several scopes must agree.
Decision decide(const Precision& precision, const Ir& written, const Node& node, bool on_way) {
  if (node.op->numerics() == Numerics::as_is) return {widest, "takes what it is given, f32 inside"};
  const Decision general = of_operator(precision, written, node, on_way);
  const std::vector<std::string> scopes = written.scopes(node.inputs);
  if (scopes.empty()) return general;
  const Decision first = of_layer(precision, scopes.front()).value_or(general);
  for (const std::string& scope : scopes) {
    const Decision own = of_layer(precision, scope).value_or(general);
    if (own.compute == first.compute) continue;
    fail(node.op->name(),
         fmt::format("expected one type for '{}' and '{}', which are one operator, got {} and {}", scopes.front(),
                     scope, text_of(first), text_of(own)),
         "name all its scopes, or use linear(), an operator of its own for each layer");
  }
  return first;
}

class Pass {
 public:
  Pass(const Ir& written, const Precision& precision) : written_(written), precision_(precision) {}

  LoweredPrecision run() {
    const std::vector<bool> on_way = on_way_to_next_state(written_);
    for (std::size_t i = 0; i < written_.nodes.size(); ++i) {
      decisions_.push_back(decide(precision_, written_, written_.nodes[i], on_way[i]));
    }
    result_.value.resize(written_.values.size());
    for (ValueId id = 0; id < written_.values.size(); ++id) {
      if (written_.values[id].origin != Origin::node) result_.value[id] = leaf(id);
    }
    for (std::size_t i = 0; i < written_.nodes.size(); ++i) rewrite(written_.nodes[i], decisions_[i]);
    for (const Update& update : written_.updates) {
      const ValueId state = result_.value[update.state];
      const DType dtype = result_.ir.values[state].type.dtype;
      result_.ir.updates.push_back({state, in_type(result_.value[update.next], dtype).id()});
    }
    return std::move(result_);
  }

 private:
  /// The one fixed type in which all operators on lists read a value; none if they differ or there are none.
  std::optional<DType> read_in(ValueId id) const {
    std::optional<DType> found;
    for (std::size_t i = 0; i < written_.nodes.size(); ++i) {
      const Node& node = written_.nodes[i];
      const bool reads = std::ranges::find(node.inputs, id) != node.inputs.end();
      if (!reads || node.op->numerics() == Numerics::as_is) continue;
      const Compute compute = decisions_[i].compute;
      if (compute == widest || (found && found != compute)) return {};
      found = compute;
    }
    return found;
  }

  /// Whether an operator accepts a value in the type that it has.
  bool read_as_is(ValueId id) const {
    return std::ranges::any_of(written_.nodes, [&](const Node& node) {
      return node.op->numerics() == Numerics::as_is && std::ranges::find(node.inputs, id) != node.inputs.end();
    });
  }

  /// An input is fed in the type that operators read it in, unless one of them accepts it as it is, and a cache is kept
  /// in that type; a state keeps its own. A parameter has the policy's type; its f32 master is read instead if there is
  /// one and all its readers compute in f32.
  ValueId leaf(ValueId id) {
    Value value = written_.values[id];
    if (is_floating(value.type.dtype)) {
      const std::optional<DType> read = read_in(id);
      if (value.origin == Origin::parameter) {
        const bool from_master = read == DType::f32 && precision_.weights == DType::f32;
        value.type.dtype = from_master ? DType::f32 : precision_.parameters;
      } else if (value.origin != Origin::state && value.type.dtype == DType::f32 && read && !read_as_is(id)) {
        value.type.dtype = *read;
      }
    }
    return result_.ir.add_value(std::move(value));
  }

  Tensor in_type(ValueId id, DType dtype) {
    const Tensor tensor = result_.ir.tensor(id);
    if (!is_floating(tensor.dtype()) || tensor.dtype() == dtype) return tensor;
    const auto found = casts_.find({id, dtype});
    if (found != casts_.end()) return result_.ir.tensor(found->second);
    const Tensor converted = cast(tensor, dtype);
    casts_[{id, dtype}] = converted.id();
    return converted;
  }

  /// The type a node computes in; none if it accepts its inputs' types.
  std::optional<DType> working_type(const Node& node, const Decision& decision) const {
    if (node.op->numerics() == Numerics::as_is) return {};
    if (decision.compute != widest) return decision.compute;
    std::optional<DType> common;
    for (const ValueId input : node.inputs) {
      const Value& value = result_.ir.values[result_.value[input]];
      if (!is_floating(value.type.dtype) || keeps(node, value)) continue;
      if (common.value_or(value.type.dtype) != value.type.dtype) return DType::f32;
      common = value.type.dtype;
    }
    return common.value_or(DType::f32);
  }

  /// If input types differ in the graph as written, the user gave them by hand.
  void check_given_types(const Node& node) const {
    if (precision_.promote || node.op->numerics() == Numerics::as_is) return;
    const Value* first = nullptr;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = written_.values[node.inputs[i]];
      if (!is_floating(value.type.dtype) || value.origin == Origin::state) continue;
      if (first == nullptr) first = &value;
      if (value.type.dtype == first->type.dtype) continue;
      fail(node.op->name(),
           fmt::format("expected argument {}, '{}', in {} as '{}' is, got {}", i + 1, value.name,
                       name(first->type.dtype), first->name, name(value.type.dtype)),
           "cast one of them, or let the policy promote");
    }
  }

  void rewrite(const Node& node, const Decision& decision) {
    check_given_types(node);
    const auto first = static_cast<NodeId>(result_.ir.nodes.size());
    const std::optional<DType> type = working_type(node, decision);
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) {
      const ValueId now = result_.value[input];
      const bool cast_it = type && !keeps(node, written_.values[input]);
      inputs.push_back(cast_it ? in_type(now, *type) : result_.ir.tensor(now));
    }
    std::optional<Tensor> in_float8;
    if (precision_.float8_linear && type == DType::f16) in_float8 = node.op->in_float8(inputs);
    const std::vector<Tensor> outputs = in_float8 ? std::vector{*in_float8} : applied_again(written_, node, inputs);
    result_.ir.attribute(first, node.scope, in_float8 ? decision.why + ", in float8" : decision.why);
    for (std::size_t i = 0; i < outputs.size(); ++i) result_.value[node.outputs[i]] = outputs[i].id();
    if (type && is_narrow(*type) && written_.values[node.outputs.front()].type.dtype == DType::f32) {
      const std::string name = node.scope.empty() ? written_.values[node.outputs.front()].name
                                                  : fmt::format("{} {}", node.scope, node.op->name());
      result_.reduced.push_back(fmt::format("{} forward f32 -> {}", name, halfstep::name(*type)));
    }
  }

  const Ir& written_;
  const Precision& precision_;
  LoweredPrecision result_{Ir(graph::Types::settled), {}, {}};
  std::vector<Decision> decisions_;  ///< for each node as written
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

}  // namespace

std::vector<Tensor> applied_again(const Ir& from, const Node& node, std::span<const Tensor> inputs) {
  std::vector<Tensor> results = graph::apply(node.op, inputs);
  std::vector<Shape> before;
  std::vector<Shape> now;
  for (const ValueId id : node.outputs) before.push_back(from.values[id].type.shape);
  for (const Tensor& result : results) now.push_back(result.shape());
  if (now == before) return results;
  const auto text = [](const std::vector<Shape>& shapes) {
    std::vector<std::string> texts;
    for (const Shape& shape : shapes) texts.push_back(to_string(shape));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  fail(node.op->name(), fmt::format("expected results of the shapes {} as at first, got {}", text(before), text(now)),
       "they follow from the inputs' shapes and the operator's attributes alone");
}

void check_names(const Ir& written, const Precision& precision) {
  const auto expect_any = [&](std::string_view what, std::string_view name, auto&& is_meant) {
    const auto follows = [&](const Node& node) { return is_meant(node) && node.op->numerics() != Numerics::as_is; };
    if (std::ranges::any_of(written.nodes, follows)) return;
    if (std::ranges::none_of(written.nodes, is_meant)) {
      fail("precision", fmt::format("expected {} '{}' in the graph, got none", what, name));
    }
    fail("precision", fmt::format("expected {} that can be given a type, got '{}'", what, name),
         "losses, metrics, casts and encodings take each input as it is");
  };
  for (const auto& [pattern, dtype] : precision.layers) {
    expect_any("a layer", pattern, [&, &pattern = pattern](const Node& node) {
      return std::ranges::any_of(written.scopes(node.inputs),
                                 [&](const std::string& scope) { return !scope.empty() && matches(pattern, scope); });
    });
  }
  for (const auto& [name, compute] : precision.operators) {
    expect_any("an operator", name, [&name = name](const Node& node) { return node.op->name() == name; });
  }
}

LoweredPrecision apply_precision(const Ir& written, const Precision& precision) {
  return Pass(written, precision).run();
}

}  // namespace halfstep::passes
