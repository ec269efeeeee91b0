#include "samples/common/training.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "samples/common/image_data.h"
#include "samples/common/predictions.h"
#include "samples/common/progress.h"
#include "samples/common/ranks.h"
#include "samples/common/report.h"
#include "samples/common/resume.h"
#include "samples/common/say.h"
#include "samples/watch/watch.h"

namespace samples {

using halfstep::Trainer;

namespace {

void print_start(const Report& report) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  say("{}, {}, {} parameters\n", report.device, report.precision, report.plan.parameters);
  say("  {} dispatches a step\n", report.plan.dispatches);
  say("  {} barriers a step\n", report.plan.barriers);
  say("  {:.1f} MiB at the peak: {:.1f} of activations and their gradients in one arena ({:.1f} without reuse), "
      "{:.2f} of weights, {:.2f} of gradients, {:.2f} of optimizer state{}\n",
      mib(report.plan.peak_bytes), mib(report.plan.arena_bytes), mib(report.plan.arena_bytes_unshared),
      mib(report.plan.weight_bytes), mib(report.plan.gradient_bytes), mib(report.plan.optimizer_bytes),
      report.plan.average_bytes > 0 ? fmt::format(", {:.2f} of averages", mib(report.plan.average_bytes)) : "");
  if (report.plan.arena_bytes_kept > report.plan.arena_bytes) {
    say("  {:.1f} MiB less than if activations were not computed again, for {:.1f}% more operations\n",
        mib(report.plan.arena_bytes_kept - report.plan.arena_bytes),
        100 * report.plan.recomputed_flops / (report.plan.flops - report.plan.recomputed_flops));
  }
}

void print_epoch(std::int64_t epoch, std::int64_t steps, const Plan& plan, const EpochResult& result) {
  const bool part = static_cast<std::int64_t>(result.steps) < steps;
  const std::string of = part ? fmt::format(" of the last {} steps", result.steps) : "";
  std::string scores;
  for (const auto& [name, score] : result.scores) scores += fmt::format(", {} {:.4f}", name, score);
  say("epoch {}/{}: loss {:.4f}{}, {:.1f} s, {:.0f} {}/s, {} accuracy {:.2f}%{}\n", epoch, plan.epochs, result.loss, of,
      result.seconds, result.samples_per_second, plan.samples, plan.test, 100 * *result.test_accuracy, scores);
}

/// What checkpoints note of the weights in the --best file: their accuracy, and the checksum of what they were tested
/// on.
constexpr const char* best_key = "best_accuracy";
constexpr const char* best_set_key = "best_test_set";

/// The training of one command, from the trainer's current position to the last epoch.
class Run {
 public:
  Run(Trainer& trainer, const Data& data, const Plan& plan, const CommonOptions& options)
      : trainer_(trainer),
        data_(data),
        plan_(plan),
        options_(options),
        epoch_steps_(data.train.count / plan.batch_size),
        saver_(trainer, options, options.save.empty() ? std::map<std::string, std::string>{} : run_notes(options, data),
               plan.beside) {}

  /// Steps that the whole training is to have, those of checkpoints included.
  std::int64_t last_step() const { return plan_.epochs * epoch_steps_ + steps_before_; }

  /// Continues from the checkpoint that the flags name.
  void resume(const halfstep::Precision& precision) {
    const Resumed resumed = samples::resume(trainer_, precision, data_, epoch_steps_, options_);
    position_ = resumed.point.epoch * epoch_steps_ + resumed.point.epoch_step;
    steps_before_ = static_cast<std::int64_t>(resumed.point.step) - position_;
    untested_ = resumed.untested;
    resume_best(resumed.notes);
  }

  /// Whether it came to the last epoch's end, its test included.
  bool train(std::vector<EpochResult>& results) {
    const std::int64_t end = plan_.epochs * epoch_steps_;
    if (untested_) {
      if (!test(position_ / epoch_steps_, *untested_, results)) return false;
    } else if (position_ >= end && !options_.quiet) {
      say("nothing left to train: {} steps are done\n", position_ + steps_before_);
    }
    if (position_ < end) make_first_steps();
    while (position_ < end) {
      const std::int64_t epoch = position_ / epoch_steps_ + 1;
      EpochResult result;
      if (!train_epoch(epoch, result) || !test(epoch, result, results)) return false;
    }
    return true;
  }

  void save() { saver_.save(); }

  /// Begins what the flags ask for besides, at the current position.
  void watch(const RunStart& start) {
    watch_.emplace(trainer_, options_.watch, start, is_first_rank());
    if (!options_.watch.pictures.empty() && is_first_rank()) {
      predictions_.emplace(trainer_, plan_.weights, *options_.watch.model, data_, options_.watch.pictures);
    }
  }
  void end_watching(bool complete) { watch_->end(complete); }

  /// Waits for pending writes. Throws the Error of the last save, or of the last best weights, that failed.
  void finish_saving() {
    saver_.finish();
    if (best_failure_) throw *best_failure_;
    if (picture_failure_) throw *picture_failure_;
    watch_->finish();
  }

 private:
  /// Runs without --best pass the notes of the best weights on.
  void resume_best(const std::map<std::string, std::string>& notes) {
    for (const char* key : {best_key, best_set_key}) {
      if (notes.contains(key)) saver_.note(key, notes.at(key));
    }
    if (!notes.contains(best_key) || !std::filesystem::exists(plan_.best)) return;
    if (notes.contains(best_set_key) && notes.at(best_set_key) != checksum(data_.test)) {
      say("the best weights before were tested on another set: {} begins anew\n", plan_.best.string());
      return;
    }
    CLI::detail::lexical_cast(notes.at(best_key), best_accuracy_);
  }

  void make_first_steps() {
    const std::int64_t left = epoch_steps_ - position_ % epoch_steps_;  // in its epoch
    const std::int64_t made = position_ + steps_before_;
    // The others are timed: one at least.
    ahead_ = watch_->first_steps(std::min(left - 1, saver_.steps_to_next(made)));
    if (ahead_ > 0) saver_.after_step(made + ahead_);
  }

  /// Tests after an epoch, reports, and saves. Returns false if interrupted: where the test was, it is noted as due.
  bool test(std::int64_t epoch, EpochResult result, std::vector<EpochResult>& results) {
    saver_.note(untested_key, untested_note(result));
    trainer_.synchronise();
    const halfstep::Evaluation test = trainer_.evaluate(data_.test, plan_.weights, alone_interrupted);
    if (test.samples < data_.test.count) return false;
    result.test_accuracy = test.metrics.at("accuracy");
    if (plan_.scores) result.scores = plan_.scores();
    results.push_back(result);
    watch_->evaluated(result);
    draw_predictions();
    print_epoch(epoch, epoch_steps_, plan_, result);
    keep_best(result);
    saver_.forget(untested_key);
    save();
    return !any_interrupted();
  }

  void draw_predictions() {
    if (!predictions_) return;
    try {
      const Predictions::Sheet sheet = predictions_->draw(trainer_.report().step);
      watch_->pictured("predictions", sheet.file, sheet.width, sheet.height);
      picture_failure_.reset();
    } catch (const halfstep::Error& error) {
      if (!picture_failure_) warn_not_saved(error);
      picture_failure_ = error;
    }
  }

  void keep_best(const EpochResult& result) {
    // Every rank takes part in reading the weights, and only the first one knows what it could write.
    if (plan_.best.empty() || !first_rank_says(*result.test_accuracy > best_accuracy_)) return;
    try {
      trainer_.save_weights(plan_.best, plan_.weights);
      best_accuracy_ = *result.test_accuracy;
      saver_.note(best_key, fmt::format("{}", best_accuracy_));
      saver_.note(best_set_key, checksum(data_.test));
      best_failure_.reset();
    } catch (const halfstep::Error& error) {
      warn_not_saved(error);
      best_failure_ = error;
    }
  }

  // Trains the rest of the epoch that position_ is in; returns false if interrupted.
  bool train_epoch(std::int64_t epoch, EpochResult& result) {
    position_ += std::exchange(ahead_, 0);
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t first = position_;
    {
      Progress progress(fmt::format("epoch {}/{}", epoch, plan_.epochs), epoch_steps_,
                        (plan_.epochs - epoch) * epoch_steps_, plan_.batch_size, plan_.samples, options_.quiet);
      while (position_ < epoch * epoch_steps_) {
        if (any_interrupted()) return false;
        trainer_.step();
        position_++;
        watch_->after_step();
        const halfstep::StepReport report = trainer_.report();
        const std::int64_t finished = static_cast<std::int64_t>(report.step) - steps_before_;
        if (position_ < epoch * epoch_steps_) saver_.after_step(position_ + steps_before_);
        progress.update(finished - (epoch - 1) * epoch_steps_, finished - first, report);
      }
      const halfstep::StepTotals totals = trainer_.take_totals();
      result.loss = totals.mean_loss;
      result.steps = totals.steps;
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.samples_per_second = static_cast<double>((position_ - first) * plan_.batch_size) / result.seconds;
    return true;
  }

  Trainer& trainer_;
  const Data& data_;
  const Plan& plan_;
  const CommonOptions& options_;
  std::int64_t epoch_steps_;  ///< at least 1: compiling refuses a batch larger than the set
  double best_accuracy_ = -1;
  std::optional<halfstep::Error> best_failure_;  ///< why the best weights could not be written
  std::int64_t position_ = 0;                    ///< steps since the start of training, in epochs of the current size
  std::int64_t steps_before_ = 0;        ///< offset to the number of steps made: nonzero after epochs of another size
  std::int64_t ahead_ = 0;               ///< steps made that position_ does not count yet
  std::optional<EpochResult> untested_;  ///< of the epoch before, where its test is due
  Saver saver_;
  std::optional<Watch> watch_;
  std::optional<Predictions> predictions_;
  std::optional<halfstep::Error> picture_failure_;  ///< why the last picture could not be written
};

}  // namespace

void add_plan_options(CLI::App& app, Plan& plan) {
  app.add_option("--batch-size", plan.batch_size, "Samples in a step")
      ->transform(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--epochs", plan.epochs, "Epochs from the start of training")
      ->transform(whole_number(1, 1000000))
      ->capture_default_str();
}

void add_rank_options(CLI::App& app, Plan& plan) {
  expect_ranks();
  app.add_option("--accumulate", plan.accumulate, "Micro-batches that a step of each rank is divided into")
      ->transform(whole_number(1, 65536))
      ->capture_default_str();
  const auto set_wire = [&plan](const std::string& name) {
    plan.ranks.wire = name == "f16"    ? halfstep::DType::f16
                      : name == "bf16" ? halfstep::DType::bf16
                                       : halfstep::DType::f32;
  };
  app.add_option_function<std::string>("--exchange", set_wire, "Type in which gradients travel between ranks (mpirun)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_option("--compare-every", plan.ranks.compare_every, "Steps after which ranks compare their weights; 0: never")
      ->transform(whole_number(0, 1'000'000'000))
      ->capture_default_str()
      ->group(running_group);
  app.add_flag("--sync-batch-norm", plan.ranks.sync_batch_norm,
               "Batch norm takes its statistics over all ranks, in place of each rank's own");
  const auto set_balance = [&plan](const std::string& text) { plan.ranks.balance = *balance_of(text); };
  const auto check_balance = [](const std::string& text) {
    return balance_of(text) ? std::string() : fmt::format("expected off, measured, or shares as 3:1, got {}", text);
  };
  app.add_option_function<std::string>("--balance", set_balance,
                                       "How ranks divide a step's micro-batches: off, in equal parts; measured, by "
                                       "speed; 3:1, in these shares")
      ->check(check_balance);
  const auto set_rounding = [&plan](const std::string& name) {
    plan.ranks.rounding = name == "nearest" ? halfstep::Rounding::nearest : halfstep::Rounding::stochastic;
  };
  app.add_option_function<std::string>("--exchange-rounding", set_rounding,
                                       "How gradients that travel in 16 bits are rounded: nearest or stochastic")
      ->check(CLI::IsMember({"nearest", "stochastic"}));
  app.add_flag("--shard-state", plan.ranks.shard_state,
               "Each rank keeps masters and optimizer state of its part of the parameters only");
  app.add_option(
         "--sync-every", plan.ranks.sync_every,
         "Steps that each rank makes by itself between two synchronisations of the weights; 0: gradients are exchanged "
         "in every step")
      ->transform(whole_number(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--outer-rate", plan.ranks.outer_rate, "Learning rate of the step that a synchronisation makes")
      ->check(number_above(0, 1000))
      ->capture_default_str();
  app.add_option("--outer-momentum", plan.ranks.outer_momentum, "Nesterov momentum of that step")
      ->check(CLI::Range(0.0F, 0.999F))
      ->capture_default_str();
}

std::int64_t micro_batch(Plan& plan) {
  plan.ranks.exchange = joined_ranks();
  const std::int64_t parts = plan.accumulate * plan.ranks.size();
  if (plan.batch_size % parts == 0) return plan.batch_size / parts;
  halfstep::fail("--batch-size", fmt::format("expected a multiple of {}, for {} ranks with {} micro-batches, got {}",
                                             parts, plan.ranks.size(), plan.accumulate, plan.batch_size));
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

namespace {

/// A checkpoint, and the files that its folder has with it.
std::vector<NamedFile> saved_files(const std::string& flag, const std::filesystem::path& checkpoint,
                                   const CommonOptions& options) {
  std::vector<NamedFile> files;
  if (checkpoint.empty()) return files;
  files.push_back({flag, checkpoint});
  for (const std::string& name : options.beside) files.push_back({flag, checkpoint.parent_path() / name});
  return files;
}

}  // namespace

void check_files(const CommonOptions& options, const Plan& plan, const std::vector<NamedFile>& inputs) {
  std::vector<NamedFile> outputs = watched_files(options.watch);
  outputs.insert(outputs.end(), {{"--json", options.json}, {"--best", plan.best}});
  check_outputs(outputs, saved_files("--resume", options.resume, options));
  // A run that goes on may save to the files that it was resumed from.
  const std::vector<NamedFile> saved = saved_files("--save", options.save, options);
  outputs.insert(outputs.end(), saved.begin(), saved.end());
  check_outputs(outputs, inputs);
  for (const auto& [flag, path] : outputs) {
    if (!path.empty() && is_data_file(options, path)) {
      halfstep::fail(flag, fmt::format("expected a file that is none of the data set, got {}", path.string()));
    }
  }
  if (!reads_image_folder(options)) return;
  for (auto& [flag, path] : outputs) {
    if (!path.empty()) path = std::filesystem::absolute(path).parent_path();
  }
  outputs.insert(outputs.end(), {{"--pictures", options.watch.pictures}, {"--tensorboard", options.watch.tensorboard}});
  for (const auto& [flag, folder] : outputs) {
    if (!folder.empty() && is_class_folder(options, folder)) {
      halfstep::fail(flag, fmt::format("expected a folder that is no class of the data set, got {}", folder.string()),
                     "the next run would train on what this one writes");
    }
  }
}

halfstep::TrainerOptions with_flags(const CommonOptions& common, const Plan& plan, halfstep::TrainerOptions training) {
  training.accumulate = plan.accumulate;
  training.ranks = plan.ranks;
  training.seed = common.seed;
  training.precision.reproducible = common.reproducible;
  return watched(common.watch, std::move(training));
}

int train(Trainer& trainer, const halfstep::Device& device, const halfstep::Precision& precision, const Data& data,
          const Plan& plan, const CommonOptions& options) {
  Run run(trainer, data, plan, options);
  if (!options.resume.empty()) run.resume(precision);
  halfstep::watch_interrupts();
  Report report{device.info().name, precision.name, {}, {}, trainer.inspect().summary(), {}};
  if (!options.quiet) print_start(report);
  const RunCosts costs(plan.ranks);
  run.watch({options.program, report.device, precision.name, !options.resume.empty(), trainer.report().step,
             run.last_step(), plan.batch_size, options.seed, options.flags});
  const bool complete = run.train(report.epochs);
  trainer.finish();
  if (!complete) run.save();
  run.end_watching(complete);
  report.last_step = trainer.report();
  report.host = trainer.inspect().host_costs();
  costs.take(report);
  if (!options.json.empty() && is_first_rank()) write_json(report, options.json);
  run.finish_saving();
  if (complete) return exit_done;
  say("stopped after {} steps{}\n", report.last_step.step,
      options.save.empty() ? "" : fmt::format(", saved in {}", options.save.string()));
  return exit_signal + stop_signal();
}

}  // namespace samples
