#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <memory>

#include "bench/commands.h"
#include "bench/models.h"
#include "samples/common/command_line.h"
#include "step/step_program.h"
#include "train/step_graph.h"
#include "tune/tuner.h"

namespace bench {
namespace {

using namespace halfstep;

struct TuneOptions {
  std::string model = "fashion_cnn";
  PrecisionFlags precision;
  std::int64_t batch = 64;
  std::int64_t layers = 3;  ///< of the mlp
};

/// The open choices of a model's training step.
std::vector<plan::Choice> choices_of(const TuneOptions& options, const plan::Target& target) {
  Graph graph;
  const Training model = model_of(options.model).build(graph, options.batch, options.layers);
  const TrainerOptions training{.loss = model.loss, .precision = precision_of(options.precision)};
  const step::StepGraph steps = train::training_graph(graph, training);
  return step::training_program(target, steps, step::layout_of(steps), {.precision = training.precision}, {})
      .plan.program.choices;
}

void add(const tune::Finding& finding, Report& report) {
  fmt::print("{}\n  takes {}, {}\n", finding.key, finding.chosen, finding.reason);
  for (const tune::Finding::Way& way : finding.ways) {
    const std::string time = way.microseconds > 0 ? fmt::format("{:.1f} us", way.microseconds) : "not measured";
    fmt::print("  {:<24} {:>14}  {}\n", way.name, time,
               way.objection.empty() ? "matches its reference" : "refused: " + way.objection);
    if (way.microseconds <= 0) continue;
    const double milliseconds = way.microseconds / 1000;
    report.add(Result{.name = fmt::format("{} by {}", finding.key, way.name),
                      .times = {milliseconds, milliseconds, 0},
                      .timer = Timer::timestamps});
  }
}

void run(const TuneOptions& options, const Bench& bench, Report& report) {
  vk::Context& context = vk::context_of(bench.device());
  plan::Target target = context.target();
  vk::Pipelines pipelines(context);
  const bool told = environment("HALFSTEP_TUNE").has_value();
  tune::Tuner tuner(context, pipelines, told ? context.settings().tuning : Tuning::force,
                    context.settings().cache_folder);
  tuner.settle_rounding(target);
  tuner.settle(choices_of(options, target), target);
  for (const tune::Finding& finding : tuner.findings()) add(finding, report);
  if (tuner.findings().empty())
    fmt::print("the rule is known on this device; HALFSTEP_TUNE=force measures all the same\n");
}

}  // namespace

Command add_tune(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tune", "What a model's step leaves open, what is chosen and why; HALFSTEP_TUNE=force if unset");
  const auto options = std::make_shared<TuneOptions>();
  command->add_option("--model", options->model, "What is trained")->check(trained_model())->capture_default_str();
  add_precision(*command, options->precision);
  command->add_option("--batch", options->batch, "Samples in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
