#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "bench/commands.h"
#include "graph/ir.h"
#include "passes/backward.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct MlpOptions {
  std::int64_t batch = 65536;
  std::int64_t in = 32;
  std::int64_t width = 32;
  std::int64_t hidden = 4;
  std::int64_t out = 3;
  std::string dtype = "f32";
  std::string activation = "relu";
};

Tensor activated(Tensor x, const std::string& name) {
  if (name == "tanh") return tanh(x);
  if (name == "gelu") return gelu(x);
  return relu(x);
}

/// `y` as a predictor computes it.
Tensor predicted(Tensor y) {
  graph::Ir& ir = graph::ir_of(y);
  const graph::Node node = ir.nodes[ir.values[y.id()].producer];
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : node.inputs) inputs.push_back(ir.tensor(id));
  return node.op->inference(inputs).value_or(y);
}

void run(const MlpOptions& options, bool fused, const Bench& bench, Report& report) {
  const DType dtype = dtype_of(options.dtype);
  Graph graph;
  const Tensor x = graph.input("x", {options.batch, options.in}, dtype);
  std::vector<graph::ValueId> trained{x.id()};
  std::vector<DenseLayer> layers;
  double products = 0;
  for (std::int64_t layer = 0; layer <= options.hidden; ++layer) {
    const std::int64_t in = layer == 0 ? options.in : options.width;
    const std::int64_t out = layer == options.hidden ? options.out : options.width;
    layers.push_back({graph.input(fmt::format("w{}", layer), {in, out}, dtype),
                      graph.input(fmt::format("b{}", layer), {out}, dtype)});
    trained.insert(trained.end(), {layers.back().weight.id(), layers.back().bias->id()});
    products += 2.0 * static_cast<double>(options.batch * in * out);
  }
  const auto activation = [&](Tensor t) { return activated(t, options.activation); };
  Tensor y = x;
  if (fused) {
    y = fused_mlp(x, layers, {.activation = activation});
  } else {
    for (const DenseLayer& layer : layers) {
      y = linear(y, layer.weight, layer.bias);
      if (&layer != &layers.back()) y = activation(y);
    }
  }
  const std::string name = fused ? "fused" : "layer by layer";
  report.add(name + " prediction", bench.run(graph, predicted(y)), products);
  const Tensor dy = graph.input("dy", {options.batch, options.out}, dtype);
  const Tensor seed = graph.input("seed", {}, dtype);
  const Tensor loss = sum(mul(y, dy));
  graph::Ir& ir = graph::ir_of(y);
  const std::vector<graph::ValueId> gradients = passes::add_backward(ir, loss.id(), seed.id(), trained);
  Tensor all = sum(ir.tensor(gradients[0]));
  for (std::size_t i = 1; i < gradients.size(); ++i) all = add(all, sum(ir.tensor(gradients[i])));
  report.add(name + " forward and gradients", bench.run(graph, all), 3 * products);
}

}  // namespace

Command add_mlp(CLI::App& app) {
  CLI::App* command = app.add_subcommand("mlp", "A small network");
  const auto options = std::make_shared<MlpOptions>();
  const auto add = [&](const char* flag, std::int64_t& value, const char* description, std::int64_t most = 1 << 24) {
    command->add_option(flag, value, description)->transform(samples::whole_number(1, most))->capture_default_str();
  };
  add("--batch", options->batch, "Rows");
  add("--in", options->in, "Columns of a row");
  add("--width", options->width, "Of hidden layers");
  add("--layers", options->hidden, "Hidden layers", 1000);
  add("--out", options->out, "Columns of the result");
  add_dtype(*command, options->dtype);
  command->add_option("--activation", options->activation, "Of hidden layers")
      ->check(CLI::IsMember({"relu", "tanh", "gelu"}))
      ->capture_default_str();
  return timed(command, [options](const Bench& bench, Report& report) {
    for (const bool fused : {false, true}) run(*options, fused, bench, report);
  });
}

}  // namespace bench
