#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>

#include "bench/commands.h"
#include "graph/ir.h"
#include "passes/backward.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct AttentionOptions {
  std::int64_t batch = 16;
  std::int64_t heads = 2;
  std::int64_t key_heads = 2;
  std::int64_t length = 128;
  std::int64_t width = 64;
  bool causal = false;
  bool composed = false;
  std::string dtype = "f32";
};

void run(const AttentionOptions& options, const Bench& bench, Report& report) {
  const DType dtype = dtype_of(options.dtype);
  const Shape queries{options.batch, options.heads, options.length, options.width};
  const Shape keys{options.batch, options.key_heads, options.length, options.width};
  Graph graph;
  const Tensor q = graph.input("q", queries, dtype);
  const Tensor k = graph.input("k", keys, dtype);
  const Tensor v = graph.input("v", keys, dtype);
  const Tensor dy = graph.input("dy", queries, dtype);
  const Tensor seed = graph.input("seed", {}, dtype);
  const std::string name =
      fmt::format("attention {} {}x{}x{}x{}{}{}", options.dtype, options.batch, options.heads, options.length,
                  options.width, options.causal ? " causal" : "", options.composed ? " composed" : "");
  // Two products forward, and four more for the gradients, of all scores or of the half that is seen.
  const double product =
      2.0 * static_cast<double>(elements(queries)) * static_cast<double>(options.length) / (options.causal ? 2 : 1);
  const Tensor y = attention(q, k, v, {.causal = options.causal, .fused = !options.composed});
  report.add(name + " forward", bench.run(graph, y), 2 * product);
  const Tensor loss = sum(mul(y, dy));
  graph::Ir& ir = graph::ir_of(y);
  const graph::ValueId inputs[] = {q.id(), k.id(), v.id()};
  const std::vector<graph::ValueId> gradients = passes::add_backward(ir, loss.id(), seed.id(), inputs);
  Tensor all = sum(ir.tensor(gradients[0]));
  for (const graph::ValueId id : {gradients[1], gradients[2]}) all = add(all, sum(ir.tensor(id)));
  report.add(name + " forward and gradients", bench.run(graph, all), 6 * product);
}

}  // namespace

Command add_attention(CLI::App& app) {
  CLI::App* command = app.add_subcommand("attention", "Attention, and its gradients for queries, keys and values");
  const auto options = std::make_shared<AttentionOptions>();
  const auto add = [&](const char* flag, std::int64_t& value, const char* description) {
    command->add_option(flag, value, description)->transform(samples::whole_number(1, 65536))->capture_default_str();
  };
  add("--batch", options->batch, "Sequences");
  add("--heads", options->heads, "Heads of queries");
  add("--key-heads", options->key_heads, "Heads of keys and values; a divisor of the queries'");
  add("--length", options->length, "Tokens of a sequence");
  add("--width", options->width, "Elements of a head");
  command->add_flag("--causal", options->causal, "Queries see no later keys");
  command->add_flag("--composed", options->composed, "Products and a softmax, which store the scores");
  add_dtype(*command, options->dtype);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
