// Trains a small GPT-2 on a text, in characters, bytes or byte pairs, in full or mixed precision. Without flags it is
// nanoGPT's model for CPUs: 4 layers, 4 heads, 128 wide, 64 characters of context.
//
//   $ bin/char_gpt --data input.txt --save model
//   ...
//   $ bin/generate model "ROMEO:"
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "models/gpt.h"
#include "models/gpt_generator.h"
#include "samples/common/command_line.h"
#include "samples/common/progress.h"
#include "samples/common/report.h"
#include "samples/common/resume.h"
#include "samples/common/saving.h"
#include "samples/common/say.h"
#include "samples/common/training.h"
#include "samples/text/gpt_folder.h"
#include "samples/text/model_folder.h"
#include "samples/text/text_data.h"
#include "samples/watch/watch.h"

using namespace halfstep;

namespace {

namespace fs = std::filesystem;

struct Options {
  models::GptOptions model{.layers = 4, .heads = 4, .width = 128, .positions = 64, .dropout = 0};
  std::int64_t steps = 2000;
  std::int64_t eval_every = 250;
  std::int64_t sample_every = 500;
  std::int64_t sample_tokens = 200;
  std::string tokenizer = "character";
  std::string precision = "mixed";
  std::string optimizer = "adamw";
  std::optional<float> learning_rate;
  samples::Plan plan{.batch_size = 12};
  samples::CommonOptions common;
};

void add_model_options(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, std::int64_t& value, const char* help, std::int64_t most) {
    return app.add_option(name, value, help)->transform(samples::whole_number(1, most))->capture_default_str();
  };
  add("--layers", options.model.layers, "Blocks of attention and feed-forward layers", 1000);
  add("--heads", options.model.heads, "Heads of attention, which divide the width", 1000);
  add("--width", options.model.width, "Elements of a token's vector", 1 << 16);
  add("--block", options.model.positions, "Tokens of context", 1 << 16);
  add("--batch-size", options.plan.batch_size, "Samples in a step", 65536);
  add("--steps", options.steps, "Steps from the start of training; the learning rate falls over them", 1'000'000'000);
  add("--eval-every", options.eval_every, "Steps between two evaluations, each with a save", 1'000'000'000)
      ->group(samples::running_group);
  add("--sample-tokens", options.sample_tokens, "Tokens of a text that is printed", 1'000'000)
      ->group(samples::running_group);
  app.add_option("--sample-every", options.sample_every, "Steps between two texts that are printed; 0: none")
      ->transform(samples::whole_number(0, 1'000'000'000))
      ->capture_default_str()
      ->group(samples::running_group);
  app.add_option("--dropout", options.model.dropout, "Of embeddings, attention and what each layer adds")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
}

void add_options(CLI::App& app, Options& options) {
  add_model_options(app, options);
  app.add_option("--tokenizer", options.tokenizer,
                 "character, bytes, or a tokenizer.json, a folder with one or with vocab.json and merges.txt")
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "adamw, or muon with AdamW for embeddings, norms and biases")
      ->check(CLI::IsMember({"adamw", "muon"}))
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate,
                 "The highest rate, from which it falls to a tenth: 0.002, or with muon 0.01")
      ->check(samples::number_above(0, 1000));
  samples::add_rank_options(app, options.plan);
  samples::add_common_options(app, options.common, samples::text_file);
  app.get_option("--data")->required();
  samples::describe_folders(app, "after every evaluation");
  app.get_option("--resume")->excludes(app.get_option("--tokenizer"));  // the folder has it
}

Tokenizer tokenizer_of(const Options& options, const std::string& text) {
  if (!options.common.resume.empty())
    return Tokenizer::load(options.common.resume.parent_path() / samples::tokenizer_name);
  if (options.tokenizer == "character") return Tokenizer::characters(text);
  if (options.tokenizer == "bytes") return Tokenizer::bytes();
  return samples::load_tokenizer(options.tokenizer);
}

/// The first nine tenths of a text to train on, the rest to validate.
samples::Data windows(const Options& options, const std::string& text, const Tokenizer& tokenizer) {
  const std::string name = options.common.data.string();
  const std::int64_t block = options.model.positions;
  const std::vector<std::uint32_t> tokens = tokenizer.encode(text);
  const auto split = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() * 9 / 10);
  samples::Data data;
  data.train =
      samples::token_windows(name + ", its first nine tenths", {tokens.begin(), split}, block, 1, tokenizer.size());
  data.test = samples::token_windows(name + ", its last tenth", {split, tokens.end()}, block, block, tokenizer.size());
  if (options.common.limit) {
    data.train = data.train.take(*options.common.limit);
    data.test = data.test.take(*options.common.limit);
  }
  return data;
}

/// A GPT with its data, ready to train.
class Model {
 public:
  Model(const Options& options, const samples::Data& data, std::int64_t batch) : options_(options), data_(data) {
    const Shape shape{batch, options.model.positions};
    tokens_ = graph_.input("tokens", shape, DType::u32);
    targets_ = graph_.input("targets", shape, DType::u32);
    const Tensor logits = models::gpt(graph_.root() / "transformer", tokens_, options.model);
    const std::int64_t rows = elements(shape);
    loss_ = cross_entropy(reshape(logits, {rows, options.model.vocabulary}), reshape(targets_, {rows}));
  }

  const Graph& graph() const { return graph_; }

  TrainerOptions training_options(const Precision& precision) const {
    TrainerOptions training{.loss = loss_, .optimizer = optimizer()};
    training.decay_vectors = false;
    training.clip_norm = 1;
    training.precision = precision;
    training.model = "gpt";
    training.feed = Feed{.inputs = {{.input = tokens_}, {.input = targets_}}};
    training.training_set = &data_.train;
    return training;
  }

 private:
  /// nanoGPT's settings but for the rate, which is twice its: a tenth of the steps, 100 at most, to the highest rate,
  /// and half a cosine to a tenth of it.
  Optimizer optimizer() const {
    const std::int64_t steps = options_.steps;
    const float rate = options_.learning_rate.value_or(options_.optimizer == "muon" ? 1e-2F : 2e-3F);
    const std::int64_t warmup = std::clamp<std::int64_t>(steps / 10, 1, 100);
    const Schedule schedule = Schedule::cosine(rate, warmup, steps, rate / 10);
    const AdamW adamw{.rate = schedule, .beta2 = 0.99F, .weight_decay = 0.1F};
    if (options_.optimizer == "adamw") return adamw;
    return Muon{.rate = schedule, .weight_decay = 0.1F, .others_patterns = {"*/wte/*", "*/wpe/*"}, .others = adamw};
  }

  const Options& options_;
  const samples::Data& data_;
  Graph graph_;
  Tensor tokens_, targets_, loss_;
};

/// Prints texts that the model writes while it is trained.
class Writer {
 public:
  Writer(const Trainer& trainer, const Options& options, const Tokenizer& tokenizer)
      : options_(options), tokenizer_(tokenizer), generator_(trainer, {.model = options.model}) {
    begin_ = tokenizer.encode("\n");
    if (begin_.empty()) begin_ = {0};
  }

  void write(std::int64_t step) {
    samples::say("a text after step {}:\n", step);
    samples::TextStream stream(tokenizer_);
    models::GenerationOptions how{.sampling = {.temperature = 0.8F, .seed = options_.common.seed},
                                  .tokens = options_.sample_tokens};
    how.drawn = [&](std::size_t, std::uint32_t token) { stream.add(token); };
    how.stop = interrupted;
    generator_.generate({{.tokens = begin_, .sequence = static_cast<std::uint64_t>(step)}}, how);
    stream.finish();
    samples::say("\n");
  }

 private:
  const Options& options_;
  const Tokenizer& tokenizer_;
  models::GptGenerator generator_;
  std::vector<std::uint32_t> begin_;
};

/// Writes what the folder of the model has besides weights.
void save_description(const Options& options, const Tokenizer& tokenizer) {
  const fs::path folder = options.common.save.parent_path();
  samples::save_tokenizer(folder, tokenizer);
  samples::write_config(folder, samples::gpt_config(options.model));
}

/// The training of one command, from the trainer's position to the last step.
class Run {
 public:
  Run(Trainer& trainer, const samples::Data& data, const Options& options, const Tokenizer& tokenizer)
      : trainer_(trainer),
        data_(data),
        options_(options),
        saver_(trainer, options.common,
               options.common.save.empty() ? std::map<std::string, std::string>{}
                                           : samples::run_notes(options.common, data),
               {.description = [&] { save_description(options, tokenizer); },
                .weights = [&] { trainer.save_weights(options.common.save.parent_path() / samples::weights_name); }}) {
    if (options.sample_every > 0 && !options.common.quiet && samples::is_first_rank())
      writer_.emplace(trainer, options, tokenizer);
  }

  void resume(const Precision& precision) {
    const std::int64_t epoch_steps = data_.train.count / options_.plan.batch_size;
    const auto [point, notes, untested] = samples::resume(trainer_, precision, data_, epoch_steps, options_.common);
    untested_ = untested;
    step_ = static_cast<std::int64_t>(point.step);
    const std::int64_t place = point.epoch * epoch_steps + point.epoch_step;
    if (place == step_) return;
    samples::say(
        "the learning rate goes on as after {} steps: the schedule keeps its place in epochs, whose size has changed\n",
        place);
  }

  /// Whether it came to the last step, evaluation included.
  bool train() {
    if (untested_) {
      if (!evaluate(*untested_)) return false;
      write_if_due();
    } else if (step_ >= options_.steps && !options_.common.quiet) {
      samples::say("nothing left to train: {} steps are done\n", step_);
    }
    const std::int64_t left = std::min(options_.steps - step_, options_.eval_every - step_ % options_.eval_every);
    const std::int64_t ahead = left > 0 ? watch_->first_steps(std::min(left - 1, saver_.steps_to_next(step_))) : 0;
    step_ += ahead;
    begin_part();
    if (ahead > 0) saver_.after_step(step_);
    samples::Progress progress("training", options_.steps, 0, options_.plan.batch_size * options_.model.positions,
                               "tokens", options_.common.quiet);
    const std::int64_t first = step_;
    while (step_ < options_.steps) {
      if (samples::any_interrupted()) return false;
      trainer_.step();
      ++step_;
      watch_->after_step();
      const StepReport report = trainer_.report();
      const auto done = static_cast<std::int64_t>(report.step);
      progress.update(done, done - first, report);
      const bool prints = step_ % options_.eval_every == 0 || step_ == options_.steps ||
                          (writer_ && step_ % options_.sample_every == 0);
      if (prints) progress.clear();
      if (step_ % options_.eval_every == 0 || step_ == options_.steps) {
        if (!evaluate(trained())) return false;
      } else {
        saver_.after_step(step_);
      }
      write_if_due();
      progress.go_on();
    }
    return true;
  }

  void save() { saver_.save(); }
  /// Begins what the flags ask for besides, at the current step.
  void watch(const samples::RunStart& start) {
    watch_.emplace(trainer_, options_.common.watch, start, samples::is_first_rank());
  }
  /// Waits for pending writes. Throws the Error of the last save that failed.
  void finish(bool complete) {
    watch_->end(complete);
    saver_.finish();
    watch_->finish();
  }

  std::vector<samples::EpochResult> results{};  ///< of each evaluation

 private:
  using Clock = std::chrono::steady_clock;

  void begin_part() {
    part_ = step_;
    start_ = Clock::now();
  }

  /// Its time does not count as training's.
  void write_if_due() {
    if (!writer_ || (step_ % options_.sample_every != 0 && step_ != options_.steps)) return;
    trainer_.finish();
    const Clock::time_point before = Clock::now();
    writer_->write(step_);
    start_ += Clock::now() - before;
  }

  /// Of the part that ends here.
  samples::EpochResult trained() {
    const StepTotals totals = trainer_.take_totals();
    samples::EpochResult result{.loss = totals.mean_loss, .steps = totals.steps};
    result.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    result.samples_per_second = static_cast<double>((step_ - part_) * options_.plan.batch_size) / result.seconds;
    return result;
  }

  /// Returns false if interrupted: where the evaluation was, it is noted as due.
  bool evaluate(samples::EpochResult result) {
    saver_.note(samples::untested_key, samples::untested_note(result));
    trainer_.synchronise();
    const Evaluation validation = trainer_.evaluate(data_.test, Weights::current, samples::alone_interrupted);
    if (validation.samples < data_.test.count) return false;
    result.scores = {{"validation_loss", validation.loss}};
    results.push_back(result);
    watch_->evaluated(result);
    samples::say("step {}/{}: loss {:.4f}, validation loss {:.4f}, {:.2f} steps/s\n", step_, options_.steps,
                 result.loss, validation.loss,
                 result.samples_per_second / static_cast<double>(options_.plan.batch_size));
    saver_.forget(samples::untested_key);
    save();
    begin_part();
    return true;
  }

  Trainer& trainer_;
  const samples::Data& data_;
  const Options& options_;
  samples::Saver saver_;
  std::optional<Writer> writer_;
  std::optional<samples::Watch> watch_;
  std::int64_t step_ = 0;
  std::optional<samples::EpochResult> untested_;  ///< of the part before step_, where its evaluation is due
  std::int64_t part_ = 0;    ///< the step after which the present part began: what is reported together
  Clock::time_point start_;  ///< of it
};

int train(const Device& device, const Options& options, std::int64_t batch, const samples::Data& data,
          const Tokenizer& tokenizer) {
  const Precision precision = Precision::level(options.precision);
  const Model model(options, data, batch);
  Trainer trainer = Trainer::compile(
      device, model.graph(), samples::with_flags(options.common, options.plan, model.training_options(precision)));
  Run run(trainer, data, options, tokenizer);
  if (!options.common.resume.empty()) run.resume(precision);
  watch_interrupts();
  samples::Report report{device.info().name, precision.name, {}, {}, trainer.inspect().summary(), {}};
  if (!options.common.quiet) {
    samples::say("{}, {}, {} parameters, {} dispatches a step\n", report.device, report.precision,
                 report.plan.parameters, report.plan.dispatches);
  }
  run.watch({options.common.program, report.device, precision.name, !options.common.resume.empty(),
             trainer.report().step, options.steps, options.plan.batch_size, options.common.seed, options.common.flags});
  const samples::RunCosts costs(options.plan.ranks);
  const bool complete = run.train();
  trainer.finish();
  if (!complete) run.save();
  report.epochs = run.results;
  report.last_step = trainer.report();
  report.host = trainer.inspect().host_costs();
  costs.take(report);
  if (!options.common.json.empty() && samples::is_first_rank()) samples::write_json(report, options.common.json);
  run.finish(complete);
  if (complete) return samples::exit_done;
  samples::say("stopped after {} steps{}\n", report.last_step.step,
               options.common.save.empty() ? "" : fmt::format(", saved in {}", options.common.save.string()));
  return samples::exit_signal + samples::stop_signal();
}

int run(Options& options) {
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::name_checkpoints(options.common);
  const bool made = options.tokenizer == "character" || options.tokenizer == "bytes";
  std::vector<samples::NamedFile> inputs = samples::tokenizer_files("--tokenizer", made ? "" : options.tokenizer);
  inputs.push_back({"--data", options.common.data});
  samples::check_files(options.common, {}, inputs);
  const std::string text = samples::read_text(options.common.data);
  const Tokenizer tokenizer = tokenizer_of(options, text);
  samples::check_characters(tokenizer, text, options.common.data);
  const samples::Data data = windows(options, text, tokenizer);
  options.model.vocabulary = tokenizer.size();
  const Device device = Device::open(options.common.device);
  if (!options.common.quiet) {
    samples::say("{} tokens of {} to train on, {} to validate\n", data.train.count + options.model.positions,
                 tokenizer.size(), data.test.count * options.model.positions);
  }
  return train(device, options, batch, data, tokenizer);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small GPT-2 on a text.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
