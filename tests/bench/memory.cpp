#include <halfstep/ops.h>

#include <fmt/format.h>

#include <array>
#include <memory>

#include "bench/commands.h"
#include "bench/peaks.h"
#include "graph/ir.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct MemoryOptions {
  Shape shape{64, 28, 28, 32};
  std::string dtype = "f32";
};

/// The gradient for input `i` of the operator that made `y`.
Tensor gradient(Graph& graph, Tensor y, std::size_t i = 0) {
  const Tensor dy = graph.input("gradient of " + y.name(), y.shape(), y.dtype());
  graph::Ir& ir = graph::ir_of(y);
  const graph::Node node = ir.nodes[ir.values[y.id()].producer];
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  for (const graph::ValueId input : node.inputs) inputs.push_back(ir.tensor(input));
  for (const graph::ValueId output : node.outputs) outputs.push_back(ir.tensor(output));
  const std::vector<std::optional<Tensor>> cotangents{dy};
  return *node.op->vjp({inputs, outputs, cotangents, std::vector<bool>(inputs.size(), true)}).at(i);
}

void run(const MemoryOptions& options, const Bench& bench, Report& report) {
  Graph graph;
  const DType dtype = dtype_of(options.dtype);
  const Tensor x = graph.input("x", options.shape, dtype);
  const Tensor other = graph.input("other", options.shape, dtype);
  const Tensor b = graph.input("b", {options.shape.back()}, dtype);
  const auto add_row = [&](std::string_view name, Tensor result) {
    report.add(fmt::format("{} {} {}", name, options.dtype, to_string(options.shape)), bench.run_last(graph, result));
  };
  add_row("copy", copy(x));
  add_row("cast", cast(x, dtype == DType::f32 ? DType::f16 : DType::f32));
  add_row("scale", scale(x, 2));
  add_row("add", add(x, other));
  add_row("bias", bias(x, b));
  const std::array<std::pair<const char*, Tensor>, 5> operators{{{"relu", relu(x)},
                                                                 {"sigmoid", sigmoid(x)},
                                                                 {"tanh", tanh(x)},
                                                                 {"max_pool2d", max_pool2d(x)},
                                                                 {"average_pool2d", average_pool2d(x)}}};
  for (const auto& [name, result] : operators) {
    add_row(name, result);
    add_row(fmt::format("{} gradient", name), gradient(graph, result));
  }
}

}  // namespace

Command add_memory(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("memory", "Operators that move data; the first row, a copy, is the upper limit");
  const auto options = std::make_shared<MemoryOptions>();
  constexpr std::array<const char*, 4> flags{"--batch", "--height", "--width", "--channels"};
  for (std::size_t i = 0; i < flags.size(); ++i) {
    command->add_option(flags[i], options->shape[i], "Extent of the images")
        ->transform(samples::whole_number(1, 65536))
        ->capture_default_str();
  }
  add_dtype(*command, options->dtype);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
