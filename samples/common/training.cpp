#include "samples/common/training.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "samples/common/checkpoint.h"
#include "samples/common/progress.h"
#include "samples/common/report.h"

namespace samples {

using halfstep::Trainer;

namespace {

void print_start(const Report& report) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fmt::print("{}, {}, {} parameters\n", report.device, report.precision, report.plan.parameters);
  fmt::print("  {} dispatches a step\n", report.plan.dispatches);
  fmt::print("  {} barriers a step\n", report.plan.barriers);
  fmt::print(
      "  {:.1f} MiB at the peak: {:.1f} of activations and their gradients in one arena ({:.1f} without reuse), "
      "{:.2f} of weights, {:.2f} of gradients, {:.2f} of optimizer state{}\n",
      mib(report.plan.peak_bytes), mib(report.plan.arena_bytes), mib(report.plan.arena_bytes_unshared),
      mib(report.plan.weight_bytes), mib(report.plan.gradient_bytes), mib(report.plan.optimizer_bytes),
      report.plan.average_bytes > 0 ? fmt::format(", {:.2f} of averages", mib(report.plan.average_bytes)) : "");
  if (report.plan.arena_bytes_kept > report.plan.arena_bytes) {
    fmt::print("  {:.1f} MiB less than if activations were not computed again, for {:.1f}% more operations\n",
               mib(report.plan.arena_bytes_kept - report.plan.arena_bytes),
               100 * report.plan.flops_again / (report.plan.flops - report.plan.flops_again));
  }
  std::fflush(stdout);
}

void print_epoch(std::int64_t epoch, std::int64_t epochs, const EpochResult& result) {
  fmt::print("epoch {}/{}: loss {:.4f}, {:.1f} s, {:.0f} images/s, test accuracy {:.2f}%\n", epoch, epochs, result.loss,
             result.seconds, result.samples_per_second, 100 * result.test_accuracy);
  std::fflush(stdout);
}

/// The training of one command, from wherever the trainer stands to the last epoch.
class Run {
 public:
  Run(Trainer& trainer, const Data& data, const Plan& plan, const CommonOptions& options)
      : trainer_(trainer),
        data_(data),
        plan_(plan),
        options_(options),
        epoch_steps_(data.train.count / plan.batch_size),
        step_(static_cast<std::int64_t>(trainer.report().step)) {}

  /// Whether it came to the last epoch's end.
  bool train(std::vector<EpochResult>& results) {
    const std::int64_t steps = plan_.epochs * epoch_steps_;
    if (step_ >= steps && !options_.quiet) fmt::print("nothing left to train: {} steps are done\n", step_);
    while (step_ < steps) {
      const std::int64_t epoch = step_ / epoch_steps_ + 1;
      EpochResult result;
      if (!train_epoch(epoch, result)) return false;
      result.test_accuracy = trainer_.evaluate(data_.test, plan_.weights).metrics.at("accuracy");
      results.push_back(result);
      print_epoch(epoch, plan_.epochs, result);
      keep_best(result);
      save();
      if (halfstep::interrupted()) return false;
    }
    return true;
  }

  void save() {
    if (!options_.save.empty()) trainer_.save(options_.save);
  }

 private:
  void keep_best(const EpochResult& result) {
    if (plan_.best.empty() || result.test_accuracy <= best_accuracy_) return;
    best_accuracy_ = result.test_accuracy;
    trainer_.save_weights(plan_.best, plan_.weights);
  }

  // The rest of the epoch that step_ lies in; false if interrupted on the way.
  bool train_epoch(std::int64_t epoch, EpochResult& result) {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t first = step_;
    {
      Progress progress(epoch, plan_.epochs, epoch_steps_, plan_.batch_size, options_.quiet);
      while (step_ < epoch * epoch_steps_) {
        if (halfstep::interrupted()) return false;
        trainer_.step();
        step_++;
        const halfstep::StepReport report = trainer_.report();
        const auto finished = static_cast<std::int64_t>(report.step);
        progress.update(finished - (epoch - 1) * epoch_steps_, finished - first, report);
      }
      result.loss = trainer_.take_totals().mean_loss;
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.samples_per_second = static_cast<double>((step_ - first) * plan_.batch_size) / result.seconds;
    return true;
  }

  Trainer& trainer_;
  const Data& data_;
  const Plan& plan_;
  const CommonOptions& options_;
  std::int64_t epoch_steps_;  ///< at least 1: a batch larger than the set is refused when the step is compiled
  double best_accuracy_ = -1;
  std::int64_t step_;  ///< steps submitted since the start of training
};

}  // namespace

void add_plan_options(CLI::App& app, Plan& plan) {
  app.add_option("--batch-size", plan.batch_size, "Images in a step")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--epochs", plan.epochs, "Epochs from the start of training")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
}

void add_learning_rate(CLI::App& app, float& rate, const std::string& help) {
  app.add_option("--learning-rate", rate, help)->check(number_above(0, 1000))->capture_default_str();
}

void add_loss_scale(CLI::App& app, float& scale, const std::string& help) {
  app.add_option("--loss-scaling-factor", scale, help)->check(number_above(0, 16777216))->capture_default_str();
}

void add_rounding(CLI::App& app, std::optional<halfstep::Rounding>& rounding, const std::string& help) {
  const auto set = [&rounding](const std::string& name) {
    rounding = name == "nearest" ? halfstep::Rounding::nearest : halfstep::Rounding::stochastic;
  };
  app.add_option_function<std::string>("--rounding", set, help)->check(CLI::IsMember({"nearest", "stochastic"}));
}

void check_outputs(const CommonOptions& options) {
  for (const auto& file : {options.save, options.json}) {
    if (!file.empty()) halfstep::check_writable(file);
  }
}

int train(Trainer& trainer, const halfstep::Device& device, const halfstep::Precision& precision, const Data& data,
          const Plan& plan, const CommonOptions& options) {
  if (!options.resume.empty()) {
    trainer.load(options.resume);
    warn_of_values_not_finite(options.resume, halfstep::summarize_checkpoint(options.resume));
  }
  Report report{device.info().name, precision.name, {}, {}, trainer.summary(), {}};
  if (!options.quiet) print_start(report);
  Run run(trainer, data, plan, options);
  const bool complete = run.train(report.epochs);
  trainer.finish();
  if (!complete) run.save();
  report.last_step = trainer.report();
  report.host = trainer.host_costs();
  if (!options.json.empty()) write_json(report, options.json);
  if (complete) return exit_done;
  fmt::print("stopped after {} steps{}\n", report.last_step.step,
             options.save.empty() ? "" : fmt::format(", saved in {}", options.save.string()));
  return exit_interrupted;
}

}  // namespace samples
