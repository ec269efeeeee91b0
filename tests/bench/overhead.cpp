#include <halfstep/ops.h>

#include <fmt/format.h>

#include "bench/commands.h"
#include "step/execution.h"

namespace bench {
namespace {

using namespace halfstep;

constexpr int dispatches = 256;

/// Times dispatches of one workgroup with almost no work: each reads the previous one's result, or all read the same
/// input.
Times submits(const Bench& bench, int count, bool dependent) {
  Graph graph;
  const Tensor first = graph.input("x", {4});
  std::vector<graph::ValueId> results;
  Tensor last = first;
  for (int i = 0; i < count; ++i) {
    last = scale(dependent ? last : first, 0.5F);
    results.push_back(last.id());
  }
  step::ExecutionOptions options;
  options.target = vk::context_of(bench.device()).target();
  options.target->fusion = false;  // each is a dispatch
  step::Execution execution(vk::context_of(bench.device()), graph.ir(), results, options);
  execution.set(first.id(), random_values(4));
  return bench.time([&] { execution.run(); });
}

/// The cost of each of `count` items: the difference between `with` and `without`, divided by `count`.
Times each(const Times& with, const Times& without, int count) {
  return {(with.median - without.median) / count, (with.least - without.least) / count, with.spread / count};
}

void run(const Bench& bench, Report& report) {
  const Times one = submits(bench, 1, true);
  report.add({.name = "submit and wait, one dispatch", .times = one});
  report.add({.name = fmt::format("one dispatch more, of {}, with a barrier", dispatches),
              .times = each(submits(bench, 1 + dispatches, true), one, dispatches)});
  report.add({.name = fmt::format("one dispatch more, of {}, without", dispatches),
              .times = each(submits(bench, 1 + dispatches, false), one, dispatches)});
}

}  // namespace

Command add_overhead(CLI::App& app) {
  CLI::App* command = app.add_subcommand("overhead", "A submit, and dispatches that do next to nothing");
  return timed(command, [](const Bench& bench, Report& report) { run(bench, report); });
}

}  // namespace bench
