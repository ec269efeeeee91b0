#include <fmt/format.h>

#include <array>
#include <iterator>

#include "step/update.h"
#include "train/step_graph.h"
#include "train/texts.h"

namespace halfstep::train {

std::string_view rounding_name(Rounding rounding) {
  return rounding == Rounding::stochastic ? "stochastic" : "nearest";
}

namespace {

using Row = std::array<std::string, 6>;

/// How results of a narrow type are stored; f32 ones are stored as they are.
std::string rounding_of(const Precision& precision, Rounding rounding, DType stored) {
  if (!is_narrow(stored)) return "-";
  return fmt::format("{}{}", rounding_name(rounding), precision.overflow == Overflow::saturate ? ", saturates" : "");
}

/// The type that sums are kept in, where an operator makes any.
std::string accumulated_in(const graph::Ir& ir, const Precision& precision, const graph::Node& node) {
  const std::string op = node.op->name();
  if (node.op->numerics() != graph::Numerics::product || op == "bias" || op == "store_rows") return "f32";
  const bool f16 = ir.values[node.inputs.front()].type.dtype == DType::f16;
  if (!f16 || op.starts_with("attention")) return "f32";
  const bool conv = op.starts_with("conv2d");
  const DType partials = conv ? precision.partials.conv2d : precision.partials.matmul;
  return partials == DType::f16 ? "f16, by 16 of k" : "f32";
}

Row row_of(const graph::Ir& ir, std::size_t index, bool forward, const Precision& precision) {
  const graph::Node& node = ir.nodes[index];
  const DType stored = ir.values[node.outputs.front()].type.dtype;
  const Rounding rounding = forward || node.recomputed ? precision.rounding.activations : precision.rounding.gradients;
  const std::string op = node.op->name();
  return {node.scope.empty() ? op : fmt::format("{}/{}", node.scope, op),
          std::string(name(stored)),
          "f32",
          accumulated_in(ir, precision, node),
          rounding_of(precision, rounding, stored),
          forward ? node.why : (node.recomputed ? "recomputed for gradients; " : "gradient; ") + node.why};
}

void print(std::string& text, const Row& row) {
  fmt::format_to(std::back_inserter(text), "{:<40} {:<7} {:<9} {:<16} {:<20} {}\n", row[0], row[1], row[2], row[3],
                 row[4], row[5]);
}

/// The operators of updates: of the first parameter of each rule that is written in operators.
void print_updates(std::string& text, const Precision& precision, const state::StoreLayout& layout) {
  std::vector<bool> told(layout.optimizers.size(), false);
  for (const state::ParameterEntry& entry : layout.parameters.entries()) {
    const std::uint32_t optimizer = entry.training.optimizer;
    if (entry.training.frozen || told[optimizer] || !layout.optimizers[optimizer]->in_operators()) continue;
    told[optimizer] = true;
    const step::UpdateGraph graph = step::update_graph(*layout.optimizers[optimizer], entry.name, entry.type.shape);
    for (const graph::Node& node : graph.ir->nodes) {
      const DType stored = graph.ir->values[node.outputs.front()].type.dtype;
      print(text, {plan::label_of(node), std::string(name(stored)), "f32", "f32",
                   rounding_of(precision, Rounding::nearest, stored), node.why + "; likewise its other parameters"});
    }
  }
}

}  // namespace

std::string explain_text(const step::StepGraph& graph, const TrainerOptions& options, const state::StoreSpec& store) {
  const Precision& precision = options.precision;
  const state::WeightStorage& weights = store.weights;
  std::string text;
  print(text, {"operator", "stored", "computed", "accumulated", "rounding", "why"});
  for (std::size_t i = 0; i < graph.ir.nodes.size(); ++i) {
    print(text, row_of(graph.ir, i, i < graph.forward_nodes, precision));
  }
  const DType read = weights.compute;
  print(text, {"weights", std::string(name(precision.weights)), "f32", "-",
               rounding_of(precision, precision.rounding.weights, precision.weights), precision.name});
  if (weights.copy) {
    print(text, {"weights, as operators read them", std::string(name(read)), "f32", "-",
                 rounding_of(precision, precision.rounding.weights, read), precision.name});
  }
  print(text, {"gradients of weights", std::string(name(read)), "f32", "-",
               rounding_of(precision, precision.rounding.gradients, read), precision.name});
  if (weights.scaled) {
    print(text,
          {"scales of these gradients", "f32", "f32", "-", "-", "gradient_scales: a power of two for each tensor"});
  }
  if (options.accumulate > 1)
    print(text, {"gradients, summed over micro-batches", "f32", "f32", "f32", "-", precision.name});
  if (store.layout.parameters.moment_elements() > 0) {
    print(text, {"moments", std::string(name(weights.moments)), "f32", "-",
                 rounding_of(precision, precision.rounding.optimizer, weights.moments), precision.name});
  }
  print_updates(text, precision, store.layout);
  if (options.ema_decay > 0) print(text, {"averages of weights", "f32", "f32", "f32", "-", "ema_decay"});
  for (const std::string& note : hyperparameter_notes(options, store.layout.optimizers)) text += note + "\n";
  return text;
}

}  // namespace halfstep::train
