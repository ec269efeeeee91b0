#include "passes/recompute.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace halfstep::passes {

using graph::Ir;
using graph::Node;
using graph::NodeId;
using graph::Origin;
using graph::Value;
using graph::ValueId;

namespace {

/// The part of `scope` that matches: "layer1/0" of "layer1/0/conv1" for the pattern "layer?/?"; empty if nothing
/// matches.
std::string_view matching_scope(std::string_view scope, std::string_view pattern) {
  for (std::size_t end = 0; end != std::string_view::npos && !scope.empty();) {
    end = scope.find('/', end + 1);
    if (matches(pattern, scope.substr(0, end))) return scope.substr(0, end);
  }
  return {};
}

class Recompute {
 public:
  Recompute(Ir& ir, std::size_t forward_nodes, std::string_view pattern)
      : ir_(ir), forward_nodes_(forward_nodes), inner_(ir.values.size(), false) {
    for (std::size_t i = 0; i < forward_nodes; ++i) segments_.push_back(segment_of(ir.nodes[i], pattern));
  }

  /// Whether there is anything to recompute.
  bool any() const {
    return std::ranges::any_of(segments_, [](std::string_view segment) { return !segment.empty(); });
  }

  /// Finds the values that nothing outside their segment reads in the forward pass.
  void find_inner(std::span<const ValueId> wanted) {
    for (std::size_t i = 0; i < forward_nodes_; ++i) {
      for (const ValueId output : ir_.nodes[i].outputs) inner_[output] = !segments_[i].empty();
    }
    for (std::size_t i = 0; i < forward_nodes_; ++i) {
      for (const ValueId input : ir_.nodes[i].inputs) {
        const Value& value = ir_.values[input];
        if (value.origin == Origin::node && segments_[value.producer] != segments_[i]) inner_[input] = false;
      }
    }
    for (const ValueId value : wanted) inner_[value] = false;
  }

  /// Inserts before each node of the backward pass the recomputation that it needs.
  void run() {
    nodes_.assign(ir_.nodes.begin(), ir_.nodes.begin() + static_cast<std::ptrdiff_t>(forward_nodes_));
    for (std::size_t i = forward_nodes_; i < ir_.nodes.size(); ++i) {
      Node node = ir_.nodes[i];
      for (ValueId& input : node.inputs) input = recomputed(input);
      append(std::move(node));
    }
    ir_.nodes = std::move(nodes_);
  }

 private:
  std::string_view segment_of(const Node& node, std::string_view pattern) const {
    if (!node.scope.empty()) return matching_scope(node.scope, pattern);
    const Value* newest = nullptr;
    for (const ValueId input : node.inputs) {
      const Value& value = ir_.values[input];
      if (value.origin == Origin::node && (newest == nullptr || value.producer > newest->producer)) newest = &value;
    }
    return newest == nullptr ? std::string_view{} : segments_[newest->producer];
  }

  void append(Node node) {
    for (const ValueId output : node.outputs) ir_.values[output].producer = static_cast<NodeId>(nodes_.size());
    nodes_.push_back(std::move(node));
  }

  /// The value to use in the backward pass: the value itself if it is kept, else its recomputed copy. What that is
  /// recomputed from comes first, by a stack of our own: a chain may have more operators than calls can be nested.
  ValueId recomputed(ValueId id) {
    std::vector<ValueId> pending{id};
    while (!pending.empty()) {
      if (const std::optional<ValueId> input = missing_input(pending.back())) {
        pending.push_back(*input);
        continue;
      }
      if (is_missing(pending.back())) append_copy(nodes_[ir_.values[pending.back()].producer]);
      pending.pop_back();
    }
    return now(id);
  }

  bool is_inner(ValueId id) const { return id < inner_.size() && inner_[id]; }
  bool is_missing(ValueId id) const { return is_inner(id) && !copies_.contains(id); }
  ValueId now(ValueId id) const { return is_inner(id) ? copies_.at(id) : id; }

  /// The first value that has to be recomputed before `id` can be.
  std::optional<ValueId> missing_input(ValueId id) const {
    if (!is_missing(id)) return std::nullopt;
    const std::vector<ValueId>& inputs = nodes_[ir_.values[id].producer].inputs;
    const auto found = std::ranges::find_if(inputs, [&](ValueId input) { return is_missing(input); });
    return found == inputs.end() ? std::nullopt : std::optional(*found);
  }

  /// Appends what recomputes a node's results. They have the same names, which key the noise.
  void append_copy(Node node) {
    node.recomputed = true;
    for (ValueId& input : node.inputs) input = now(input);
    for (ValueId& output : node.outputs) {
      const ValueId copy = ir_.add_value(ir_.values[output]);
      if (inner_[output]) copies_[output] = copy;
      output = copy;
    }
    append(std::move(node));
  }

  Ir& ir_;
  std::size_t forward_nodes_;
  std::vector<std::string_view> segments_;  ///< of each forward node: the scope it is recomputed with, or empty
  std::vector<bool> inner_;                 ///< values that are not kept
  std::map<ValueId, ValueId> copies_;
  std::vector<Node> nodes_;
};

}  // namespace

void recompute(Ir& ir, std::size_t forward_nodes, std::string_view pattern, std::span<const ValueId> wanted) {
  Recompute pass(ir, forward_nodes, pattern);
  if (!pass.any()) {
    fail("recompute", fmt::format("expected a scope that matches '{}', got none", pattern),
         "a parameter 'layer1/0/conv1/weight' lies in the scopes 'layer1', 'layer1/0' and 'layer1/0/conv1'");
  }
  pass.find_inner(wanted);
  pass.run();
}

}  // namespace halfstep::passes
