#include "passes/backward.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace halfstep::passes {

using graph::Gradients;
using graph::Ir;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

/// Which values depend on any of `sources`.
std::vector<bool> dependents(const Ir& ir, std::span<const ValueId> sources) {
  std::vector<bool> depends(ir.values.size(), false);
  for (const ValueId id : sources) depends[id] = true;
  for (const Node& node : ir.nodes) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId input) { return depends[input]; });
    for (const ValueId output : node.outputs) depends[output] = any;
  }
  return depends;
}

class Backward {
 public:
  Backward(Ir& ir, std::vector<bool> trained, ValueId seed)
      : ir_(ir), trained_(std::move(trained)), cotangents_(ir.values.size()), seed_(seed) {}

  void run(ValueId loss) {
    const ValueId wanted[] = {loss};
    std::vector<NodeId> order = needed_nodes(ir_, wanted);
    cotangents_[loss] = ir_.tensor(seed_);
    for (auto node = order.rbegin(); node != order.rend(); ++node) step_back(*node);
  }

  const std::optional<Tensor>& cotangent(ValueId id) const { return cotangents_[id]; }

 private:
  void step_back(NodeId id) {
    const Node node = ir_.nodes[id];  // a copy: the backward pass appends nodes
    const bool reached = std::ranges::any_of(node.outputs, [&](ValueId v) { return cotangents_[v].has_value(); });
    std::vector<bool> needed;
    for (const ValueId input : node.inputs) needed.push_back(trained_[input]);
    if (!reached || std::ranges::none_of(needed, std::identity{})) return;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::vector<std::optional<Tensor>> cotangents;
    for (const ValueId input : node.inputs) inputs.push_back(ir_.tensor(input));
    for (const ValueId output : node.outputs) {
      outputs.push_back(ir_.tensor(output));
      cotangents.push_back(cotangents_[output]);
    }
    const auto first = static_cast<NodeId>(ir_.nodes.size());
    const Gradients gradients = node.op->vjp({inputs, outputs, cotangents, needed, ir_.tensor(seed_)});
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (needed[i] && gradients[i]) accumulate(node, node.inputs[i], *gradients[i]);
    }
    ir_.attribute(first, node.scope, node.why);
  }

  /// The first gradient of a value is used as it is; later ones are added to it.
  void accumulate(const Node& node, ValueId value, Tensor gradient) {
    if (gradient.type() != ir_.values[value].type) {
      fail(node.op->name(), fmt::format("expected a gradient of {} for '{}', got {}", to_string(ir_.values[value].type),
                                        ir_.values[value].name, to_string(gradient.type())));
    }
    cotangents_[value] = cotangents_[value] ? add(*cotangents_[value], gradient) : gradient;
  }

  Ir& ir_;
  std::vector<bool> trained_;
  std::vector<std::optional<Tensor>> cotangents_;
  ValueId seed_;
};

}  // namespace

std::vector<ValueId> add_backward(Ir& ir, ValueId loss, ValueId seed, std::span<const ValueId> parameters) {
  Backward backward(ir, dependents(ir, parameters), seed);
  backward.run(loss);
  std::vector<ValueId> gradients;
  for (const ValueId parameter : parameters) {
    const std::optional<Tensor>& gradient = backward.cotangent(parameter);
    if (!gradient) {
      fail(
          "backward",
          fmt::format("expected a gradient for every parameter to train, got none for '{}'", ir.values[parameter].name),
          "the loss depends on it by operators without a gradient only, such as comparisons: freeze it by a group");
    }
    gradients.push_back(gradient->id());
  }
  return gradients;
}

std::vector<NodeId> needed_nodes(const Ir& ir, std::span<const ValueId> wanted) {
  std::vector<bool> needed(ir.values.size(), false);
  for (const ValueId id : wanted) needed[id] = true;
  std::vector<NodeId> order;
  for (auto id = static_cast<NodeId>(ir.nodes.size()); id-- > 0;) {
    const Node& node = ir.nodes[id];
    if (std::ranges::none_of(node.outputs, [&](ValueId output) { return needed[output]; })) continue;
    for (const ValueId input : node.inputs) needed[input] = true;
    order.push_back(id);
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace halfstep::passes
