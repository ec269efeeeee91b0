#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/commands.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct UpdateOptions {
  std::int64_t parameters = 1 << 22;
  PrecisionFlags precision{.name = "float32"};
};

/// A step on the sum of the squares of a number of parameters: the time of each stage after the backward pass.
std::map<std::string, Measured> stages(const UpdateOptions& options, const Optimizer& optimizer, const Bench& bench) {
  Graph graph;
  const Tensor weights = graph.root().parameter("weights", {options.parameters}, normal(0.01F));
  TrainerOptions how{.loss = cast(sum(mul(weights, weights)), DType::f32)};
  how.optimizer = optimizer;
  how.precision = precision_of(options.precision);
  how.precision.loss_scale = LossScale::none();  // it could overflow, and then skipped updates would look fast
  Trainer trainer = Trainer::compile(bench.device(), graph, how);
  for (int i = 0; i < 3; ++i) trainer.step({});
  std::map<std::string, std::vector<double>> milliseconds;
  std::map<std::string, Measured> result;
  for (int i = 0; i < bench.repeats(); ++i) {
    std::map<std::string, Measured> sums;
    for (const DispatchCost& cost : trainer.inspect().profile(1, {})) {
      sums[cost.label].times.median += cost.milliseconds;
      sums[cost.label].bytes += static_cast<double>(cost.bytes);
    }
    for (const auto& [label, sum] : sums) {
      milliseconds[label].push_back(sum.times.median);
      result[label] = {{}, Timer::timestamps, sum.bytes};
    }
  }
  for (auto& [label, measured] : result) measured.times = times_of(milliseconds[label]);
  return result;
}

void run(const UpdateOptions& options, const Bench& bench, Report& report) {
  const std::map<std::string, Optimizer> optimizers{
      {"sgd", Sgd{}},
      {"sgd with momentum", Sgd{.momentum = 0.9F}},
      {"adam", Adam{}},
      {"adamw", AdamW{}},
      {"lion", Lion{}},
      {"rmsprop", RmsProp{}},
      {"rmsprop centered with momentum", RmsProp{.momentum = 0.9F, .centered = true}}};
  for (const auto& [name, optimizer] : optimizers) {
    const std::map<std::string, Measured> costs = stages(options, optimizer, bench);
    if (name == "adam")
      report.add(fmt::format("check {} {}", options.precision.name, options.parameters), costs.at("check"));
    report.add(fmt::format("update {} {} {}", options.precision.name, options.parameters, name), costs.at("update"));
  }
}

}  // namespace

Command add_update(CLI::App& app) {
  CLI::App* command = app.add_subcommand("update", "The check of the gradients, and each optimizer's update");
  const auto options = std::make_shared<UpdateOptions>();
  command->add_option("--parameters", options->parameters, "Trainable scalars")
      ->transform(samples::whole_number(1, 1 << 24))
      ->capture_default_str();
  add_precision(*command, options->precision);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
