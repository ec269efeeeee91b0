#include "graph/backward.h"
#include "step/stages.h"

namespace halfstep::step {

void run_graph(plan::ProgramBuilder& builder, const graph::Ir& ir, std::span<const graph::ValueId> wanted,
               std::vector<bool>& lowered, const std::function<void(const graph::Node&)>& done) {
  lowered.resize(ir.nodes.size(), false);
  for (const graph::NodeId node : graph::needed_nodes(ir, wanted)) {
    if (lowered[node]) continue;
    builder.lower(ir, ir.nodes[node]);
    lowered[node] = true;
    done(ir.nodes[node]);
  }
}

}  // namespace halfstep::step
