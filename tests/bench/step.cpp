#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "bench/commands.h"
#include "bench/models.h"
#include "samples/common/command_line.h"
#include "samples/watch/trace.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/device/context.h"

namespace bench {
namespace {

using namespace halfstep;

struct StepOptions {
  std::string model = "fashion_cnn";
  PrecisionFlags precision;
  bool stochastic = false;
  bool saturate = false;
  bool float16_moments = false;
  bool gradient_scales = false;
  bool stop = false;
  std::string watch;
  std::uint64_t every = 10;
  std::int64_t batch = 64;
  std::int64_t layers = 3;
  std::int64_t steps = 10;
  std::size_t operators = 5;
  double budget = 0;
  std::filesystem::path trace;
};

Precision policy_of(const StepOptions& options) {
  Precision precision = precision_of(options.precision);
  if (options.stochastic) {
    precision.rounding.activations = precision.rounding.gradients = Rounding::stochastic;
  }
  if (options.saturate) precision.overflow = Overflow::saturate;
  if (options.float16_moments) precision.moments = DType::f16;
  if (options.gradient_scales) precision.gradient_scales = GradientScales::per_tensor;
  if (options.stop) {
    precision.stop_on = {.overflow = true, .invalid = true, .divide_by_zero = true};
    precision.loss_scale = LossScale::none();
  }
  return precision;
}

Trainer trainer_of(const StepOptions& options, const Device& device, const Dataset& set) {
  Graph graph;
  Training training = model_of(options.model).build(graph, options.batch, options.layers);
  return Trainer::compile(device, graph,
                          {.loss = training.loss,
                           .metrics = std::move(training.metrics),
                           .optimizer = Adam{.rate = 1e-4F},
                           .precision = policy_of(options),
                           .feed = std::move(training.feed),
                           .training_set = &set});
}

std::vector<OperatorCost> operators_of(std::span<const DispatchCost> costs) {
  std::vector<OperatorCost> result;
  for (const DispatchCost& cost : costs) {
    result.push_back({cost.label, cost.shader, cost.milliseconds, cost.flops, static_cast<double>(cost.bytes)});
  }
  return result;
}

std::map<std::string, double> figures_of(const Trainer& trainer, double samples_per_second) {
  const PlanSummary& plan = trainer.inspect().summary();
  const HostCosts host = trainer.inspect().host_costs();
  return {{"samples_per_second", samples_per_second},
          {"dispatches", static_cast<double>(plan.dispatches)},
          {"barriers", static_cast<double>(plan.barriers)},
          {"parameters", static_cast<double>(plan.parameters)},
          {"arena_bytes", static_cast<double>(plan.arena_bytes)},
          {"weight_bytes", static_cast<double>(plan.weight_bytes)},
          {"peak_bytes", static_cast<double>(plan.peak_bytes)},
          {"host_us_per_step", host.microseconds_per_step},
          {"submits", static_cast<double>(host.submits)}};
}

/// Runs steps in parts that are to take `budget` milliseconds, and adds how long each call of a thousand kept the
/// device and the host, by the host's clock. Those of the first steps, which are cut by predicted times, are not
/// counted.
void add_budget(double budget, const Bench& bench, Trainer& trainer, std::map<std::string, double>& figures) {
  constexpr int calls = 1000;
  vk::Context& context = vk::context_of(bench.device());
  vk::Timeline timeline(context);
  vk::Recorder nothing(context);
  nothing.begin(0);
  nothing.end();
  const std::chrono::duration<double, std::milli> wanted(budget);
  const auto part = [&] { return trainer.run_for(std::chrono::duration_cast<std::chrono::nanoseconds>(wanted)); };
  for (int ended = 0; ended < 8;) ended += part() ? 1 : 0;
  trainer.finish();
  std::vector<double> milliseconds;
  std::uint64_t ended = 0;
  for (int i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ended += part() ? 1U : 0U;
    timeline.wait(timeline.submit(nothing));  // which finishes after what was submitted before
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(milliseconds);
  figures["budget_ms"] = budget;
  figures["call_ms_median"] = milliseconds[calls / 2];
  figures["call_ms_percentile_99"] = milliseconds[calls * 99 / 100];
  figures["call_ms_longest"] = milliseconds.back();
  figures["steps_in_1000_calls"] = static_cast<double>(ended);
}

/// Steps are timed by the host's clock, a few at a time, as in a training loop.
void run(const StepOptions& options, const Bench& bench, Report& report) {
  if (!options.trace.empty()) {
    if (!bench.has_timestamps()) fail("bench", "expected a queue with timestamps for --trace, got one without");
    check_writable(options.trace);
  }
  const Dataset set = model_of(options.model).set(4 * options.batch);
  Trainer trainer = trainer_of(options, bench.device(), set);
  if (!options.watch.empty()) trainer.inspect().watch(options.watch, options.every);
  Times times = bench.time([&] {
    for (std::int64_t i = 0; i < options.steps; ++i) trainer.step();
    trainer.finish();
  });
  const auto steps = static_cast<double>(options.steps);
  times = {times.median / steps, times.least / steps, times.spread / steps};
  Result result{.name = fmt::format("step {} {} batch {}", options.model, options.precision.name, options.batch),
                .times = times,
                .figures = figures_of(trainer, 1000 * static_cast<double>(options.batch) / times.median)};
  if (bench.has_timestamps() && !options.stop) {  // which looks at tensors, as no step does whose dispatches are timed
    const std::vector<DispatchCost> costs = trainer.inspect().profile(bench.repeats());
    for (const DispatchCost& cost : costs) result.flops += cost.flops;
    report.add_operators(operators_of(costs), options.operators);
    if (!options.trace.empty()) samples::write_trace(options.trace, trainer.inspect().timeline(bench.repeats()));
  }
  if (options.budget > 0) add_budget(options.budget, bench, trainer, result.figures);
  report.add(std::move(result));
}

}  // namespace

Command add_step(CLI::App& app) {
  CLI::App* command = app.add_subcommand("step", "A whole training step of a model, with its most costly operators");
  const auto options = std::make_shared<StepOptions>();
  command->add_option("--model", options->model, "What is trained")->check(trained_model())->capture_default_str();
  add_precision(*command, options->precision);
  command->add_flag("--stochastic", options->stochastic, "Round activations and gradients in f16 stochastically");
  command->add_flag("--saturate", options->saturate, "Store 65504 for what is too large for f16");
  command->add_flag("--float16-moments", options->float16_moments, "Keep the optimizer's moments in f16");
  command->add_flag("--gradient-scales", options->gradient_scales, "Store each tensor's gradient times its own scale");
  CLI::Option* const stop = command->add_flag(
      "--stop", options->stop, "Stop at infinities and NaNs; without a loss scale, and without times of operators");
  command->add_option("--watch", options->watch, "Tensors whose statistics are taken, by pattern: \"*gradient\"");
  command->add_option("--every", options->every, "One step out of how many they are taken in")
      ->transform(samples::whole_number(1, 1000000))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Samples in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_option("--layers", options->layers, "Dense layers of the mlp")
      ->transform(samples::whole_number(1, 1000))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Steps timed together")
      ->transform(samples::whole_number(1, 100000))
      ->capture_default_str();
  command->add_option("--operators", options->operators, "How many of the most costly operators to print")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  command->add_option("--budget", options->budget, "Also time a thousand parts of steps that are to take so many ms")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option("--trace", options->trace, "File to write a timeline of a few steps to, for ui.perfetto.dev")
      ->excludes(stop);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
