#include "bench/peaks.h"

#include "bench/commands.h"
#include "ops/apply.h"
#include "ops/elementwise/multiply_adds.h"
#include "ops/kernel.h"
#include "vk/device/context.h"

namespace bench {
namespace {

using namespace halfstep;

class Copy final : public graph::Operator {
 public:
  std::string name() const override { return "copy"; }
  graph::Attributes attributes() const override { return {}; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void lower(plan::Lowering& out) const override {
    const std::uint32_t pairs =
        ops::index32(out, static_cast<std::int64_t>(plan::byte_size(out.type(out.output(0))) / 8));
    ops::dispatch_flat(out, "copy", pairs, pairs,
                       {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}});
  }
};

Result multiply_adds_row(const Bench& bench) {
  // So many that neither the launch nor reading and writing them matters, and not so much that software drivers take
  // long. They need fewer numbers to be occupied.
  const bool cpu = vk::context_of(bench.device()).target().cpu;
  const std::int64_t numbers = cpu ? 1 << 18 : 1 << 20;
  const std::int32_t rounds = cpu ? 16 : 128;
  Graph graph;
  const Tensor y = ops::multiply_adds(graph.input("x", {numbers}), rounds, 1e-6F);
  const Measured measured = bench.run(graph, y);
  Result row{.name = "multiply-adds in registers, f32", .times = measured.times, .timer = measured.timer};
  row.flops = 2.0 * static_cast<double>(numbers * ops::multiply_adds_in_round * rounds);
  return row;
}

Result copy_row(const Bench& bench) {
  constexpr std::int64_t bytes = 64 << 20;
  Graph graph;
  const Measured measured = bench.run(graph, copy(graph.input("x", {bytes / 4})));
  return {.name = "copy of 64 MiB", .times = measured.times, .timer = measured.timer, .bytes = measured.bytes};
}

}  // namespace

Tensor copy(Tensor x) {
  return ops::apply<Copy>({x});
}

Peaks measure_peaks(const Bench& bench) {
  const Result arithmetic = multiply_adds_row(bench);
  const Result memory = copy_row(bench);
  return {.flops = arithmetic.flops / arithmetic.times.least, .bytes = memory.bytes / memory.times.least};
}

Command add_peaks(CLI::App& app) {
  CLI::App* command = app.add_subcommand("peaks", "What every other row is held against");
  return timed(command, [](const Bench& bench, Report& report) {
    report.add(multiply_adds_row(bench));
    report.add(copy_row(bench));
  });
}

}  // namespace bench
