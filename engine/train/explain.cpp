#include <fmt/format.h>

#include <iterator>

#include "train/trainer_impl.h"

namespace halfstep {
namespace {

struct Row {
  std::string name;
  std::string stored;
  std::string accumulated;
  std::string reason;
};

Row row_of(const graph::Ir& ir, const graph::Node& node, const Precision& precision) {
  const TensorType& type = ir.values[node.outputs.front()].type;
  const std::string op = node.op->name();
  const bool product = op.starts_with("matmul") || op.starts_with("linear") || op.starts_with("conv2d");
  Row row{node.scope.empty() ? op : fmt::format("{}/{}", node.scope, op), std::string(name(type.dtype)),
          product && precision.float16_partials ? "f16" : "f32", ""};
  if (node.op->numerics() == graph::Numerics::as_is) {
    row.reason = "takes and gives what it is given, in f32 inside";
  } else {
    row.reason = fmt::format("{} computes in {}", precision.name, name(precision.compute));
  }
  if (row.accumulated == "f16") row.reason += ", f16 partials asked for";
  return row;
}

}  // namespace

std::string Trainer::Impl::explain() const {
  std::string text =
      fmt::format("{:<40} {:<7} {:<9} {:<12} {}\n", "operator", "stored", "computed", "accumulated", "why");
  for (const graph::Node& node : graph_.ir.nodes) {
    const Row row = row_of(graph_.ir, node, precision_);
    fmt::format_to(std::back_inserter(text), "{:<40} {:<7} {:<9} {:<12} {}\n", row.name, row.stored, "f32",
                   row.accumulated, row.reason);
  }
  const bool narrow = form_.compute == DType::f16;
  fmt::format_to(std::back_inserter(text), "weights: {}; gradients: {}; moments: f32\n",
                 !narrow        ? "f32"
                 : form_.master ? "f32 masters with an f16 copy, rounded to nearest"
                                : "f16 alone, rounded stochastically",
                 name(form_.compute));
  return text;
}

}  // namespace halfstep
