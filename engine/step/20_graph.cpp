#include "passes/backward.h"
#include "step/stages.h"

namespace halfstep::step {

void run_graph(const graph::Ir& ir, std::span<const graph::ValueId> wanted, std::vector<bool>& lowered,
               const std::function<void(const graph::Node&)>& lower) {
  lowered.resize(ir.nodes.size(), false);
  for (const graph::NodeId node : passes::needed_nodes(ir, wanted)) {
    if (lowered[node]) continue;
    lower(ir.nodes[node]);
    lowered[node] = true;
  }
}

}  // namespace halfstep::step
