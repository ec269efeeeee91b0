#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "passes/backward.h"
#include "step/stages.h"

namespace halfstep::step {
namespace {

bool has_its_node(const graph::Ir& ir, graph::ValueId value) {
  if (ir.values[value].origin != graph::Origin::node) return true;
  const graph::NodeId producer = ir.values[value].producer;
  return producer < ir.nodes.size() && std::ranges::count(ir.nodes[producer].outputs, value) == 1;
}

}  // namespace

void run_graph(const graph::Ir& ir, std::span<const graph::ValueId> wanted, std::vector<bool>& lowered,
               const std::function<void(const graph::Node&)>& lower) {
  for (const graph::ValueId value : wanted) {
    if (has_its_node(ir, value)) continue;
    fail("program", fmt::format("expected an operator that computes '{}', got none", ir.values[value].name));
  }
  lowered.resize(ir.nodes.size(), false);
  for (const graph::NodeId node : passes::needed_nodes(ir, wanted)) {
    if (lowered[node]) continue;
    lower(ir.nodes[node]);
    lowered[node] = true;
  }
}

}  // namespace halfstep::step
