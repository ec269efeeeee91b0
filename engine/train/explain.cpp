#include <fmt/format.h>

#include <array>
#include <iterator>

#include "train/step_graph.h"
#include "train/texts.h"

namespace halfstep::train {
namespace {

using Row = std::array<std::string, 6>;

std::string_view name_of(Rounding rounding) {
  return rounding == Rounding::stochastic ? "stochastic" : "nearest";
}

/// How results of a narrow type are stored; f32 ones are stored as they are.
std::string rounding_of(const Precision& precision, Rounding rounding, DType stored) {
  if (!is_narrow(stored)) return "-";
  return fmt::format("{}{}", name_of(rounding), precision.overflow == Overflow::saturate ? ", saturates" : "");
}

/// The type that sums are kept in, where an operator makes any.
std::string accumulated_in(const Precision& precision, const graph::Node& node) {
  if (node.op->numerics() != graph::Numerics::product || node.op->name() == "bias") return "f32";
  const bool conv = node.op->name().starts_with("conv2d");
  const DType partials = conv ? precision.partials.conv2d : precision.partials.matmul;
  return partials == DType::f16 ? "f16, by 16 of k" : "f32";
}

Row row_of(const graph::Ir& ir, std::size_t index, bool forward, const Precision& precision) {
  const graph::Node& node = ir.nodes[index];
  const DType stored = ir.values[node.outputs.front()].type.dtype;
  const Rounding rounding = forward || node.again ? precision.rounding.activations : precision.rounding.gradients;
  const std::string op = node.op->name();
  return {node.scope.empty() ? op : fmt::format("{}/{}", node.scope, op),
          std::string(name(stored)),
          "f32",
          accumulated_in(precision, node),
          rounding_of(precision, rounding, stored),
          forward ? node.why : (node.again ? "again, for gradients; " : "gradient; ") + node.why};
}

void print(std::string& text, const Row& row) {
  fmt::format_to(std::back_inserter(text), "{:<40} {:<7} {:<9} {:<16} {:<20} {}\n", row[0], row[1], row[2], row[3],
                 row[4], row[5]);
}

}  // namespace

std::string explain_text(const step::StepGraph& graph, const step::StepOptions& options,
                         const state::StoreForm& store) {
  const Precision& precision = options.precision;
  const state::WeightForm& form = store.weights;
  std::string text;
  print(text, {"operator", "stored", "computed", "accumulated", "rounding", "why"});
  for (std::size_t i = 0; i < graph.ir.nodes.size(); ++i) {
    print(text, row_of(graph.ir, i, i < graph.forward_nodes, precision));
  }
  const DType read = form.compute;
  print(text, {"weights", std::string(name(precision.weights)), "f32", "-",
               rounding_of(precision, precision.rounding.weights, precision.weights), precision.name});
  if (form.copy) {
    print(text, {"weights, as operators read them", std::string(name(read)), "f32", "-",
                 rounding_of(precision, precision.rounding.weights, read), precision.name});
  }
  print(text, {"gradients of weights", std::string(name(read)), "f32", "-",
               rounding_of(precision, precision.rounding.gradients, read), precision.name});
  if (form.scaled) {
    print(text,
          {"scales of these gradients", "f32", "f32", "-", "-", "gradient_scales: a power of two for each tensor"});
  }
  if (options.accumulate > 1)
    print(text, {"gradients, summed over micro-batches", "f32", "f32", "f32", "-", precision.name});
  if (form.moments_per_element > 0) {
    print(text, {"moments", std::string(name(form.moments)), "f32", "-",
                 rounding_of(precision, precision.rounding.optimizer, form.moments), precision.name});
  }
  if (options.average_decay > 0) print(text, {"averages of weights", "f32", "f32", "f32", "-", "average_decay"});
  for (const std::string& note : hyperparameter_notes(precision, options.optimizer)) text += note + "\n";
  return text;
}

}  // namespace halfstep::train
