#include "graph/inference.h"

namespace halfstep::graph {

LoweredPrecision for_inference(const LoweredPrecision& training) {
  const Ir& from = training.ir;
  LoweredPrecision result;
  std::vector<ValueId> now(from.values.size());
  for (ValueId id = 0; id < from.values.size(); ++id) {
    if (from.values[id].origin != Origin::node) now[id] = result.ir.add_value(from.values[id]);
  }
  for (const Node& node : from.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(result.ir.tensor(now[input]));
    if (const auto instead = node.op->inference(inputs)) {
      now[node.outputs.front()] = instead->id();
      continue;
    }
    const std::vector<Tensor> outputs = graph::apply(node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) now[node.outputs[i]] = outputs[i].id();
  }
  for (const ValueId id : training.value) result.value.push_back(now[id]);
  return result;
}

}  // namespace halfstep::graph
