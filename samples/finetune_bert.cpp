// Trains a BERT to classify short texts: TweetEval's sets, in full or mixed precision. With --weights and --vocab it
// fine-tunes a model of Hugging Face's; without, it builds a vocabulary from the training texts and trains from
// scratch.
//
//   $ bin/finetune_bert --data tweeteval/datasets/offensive --config tiny --learning-rate 3e-4
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/bert.h"
#include "samples/common/command_line.h"
#include "samples/common/ranks.h"
#include "samples/common/say.h"
#include "samples/common/training.h"
#include "samples/text/bert_folder.h"
#include "samples/text/model_folder.h"
#include "samples/text/text_classifier.h"
#include "samples/text/text_data.h"

using namespace halfstep;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_tokens = 512;  ///< of a text

struct Options {
  std::string config = "base";
  std::string precision = "mixed";
  fs::path weights;
  fs::path vocabulary;
  bool cased = false;
  std::uint32_t vocabulary_size = 8000;
  std::optional<std::int64_t> longest;
  std::int64_t buckets = 4;
  float learning_rate = 2e-5F;
  float dropout = 0.1F;
  bool recompute = false;
  bool compare = false;
  samples::Plan plan{.batch_size = 16, .epochs = 5};
  samples::CommonOptions common;
};

/// Sizes by name: those of Turc et al. 2019, and the base model.
const std::map<std::string, models::BertOptions>& configs() {
  static const std::map<std::string, models::BertOptions> all{
      {"tiny", {.layers = 2, .heads = 2, .width = 128, .hidden = 512}},
      {"mini", {.layers = 4, .heads = 4, .width = 256, .hidden = 1024}},
      {"small", {.layers = 4, .heads = 8, .width = 512, .hidden = 2048}},
      {"base", {}}};
  return all;
}

void add_options(CLI::App& app, Options& options) {
  std::vector<std::string> names;
  for (const auto& [name, config] : configs()) names.push_back(name);
  app.add_option("--config", options.config,
                 "Size: tiny (2 layers, 128 wide), mini (4, 256), small (4, 512), base (12, 768)")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  CLI::Option* const vocabulary =
      app.add_option("--vocab", options.vocabulary, "vocab.txt or tokenizer.json; without it, one is learned")
          ->group(samples::files_group);
  app.add_option("--weights", options.weights, "safetensors file of a BERT to start from; without it, random weights")
      ->needs(vocabulary)
      ->group(samples::files_group);
  app.add_option("--vocab-size", options.vocabulary_size, "Tokens of a vocabulary that is learned")
      ->transform(samples::whole_number(256, 1 << 20))
      ->capture_default_str();
  app.add_flag("--cased", options.cased, "Keep case and accents: of a vocab.txt, or of a vocabulary that is learned");
  app.add_option("--max-length", options.longest,
                 "Tokens of a text; longer ones are cut: 512, or as many as the model to start from has positions")
      ->transform(samples::whole_number(3, most_tokens));
  app.add_option("--buckets", options.buckets,
                 "Lengths that texts are padded to, at most: a batch has texts of one; 1: all to the longest")
      ->transform(samples::whole_number(1, 16))
      ->capture_default_str();
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_learning_rate(app, options.learning_rate, "AdamW's highest rate, after a tenth of the steps");
  app.add_option("--dropout", options.dropout, "Of embeddings, attention and what each layer adds")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_flag(
      "--recompute", options.recompute,
      "Keep only the inputs of each layer for the backward pass, and compute the rest again: less memory, more "
      "time, the same numbers");
  CLI::Option* const compare =
      app.add_flag("--compare", options.compare, "Train in float32 and then in --precision, and compare the two")
          ->group(samples::running_group);
  samples::add_common_options(app, options.common, samples::tweets);
  app.get_option("--data")->required();
  samples::describe_folders(app, "after every epoch");
  for (const char* flag : {"--save", "--resume", "--json", "--log", "--plot", "--tensorboard", "--trace", "--graph"}) {
    compare->excludes(app.get_option(flag));
  }
  vocabulary->excludes(app.get_option("--vocab-size"));
  for (const char* flag : {"--vocab", "--vocab-size", "--cased"}) {
    app.get_option("--resume")->excludes(app.get_option(flag));  // the folder has its tokenizer
  }
}

Tokenizer tokenizer_of(const Options& options, const samples::TextData& data) {
  if (!options.common.resume.empty())
    return Tokenizer::load(options.common.resume.parent_path() / samples::tokenizer_name);
  const fs::path& file = options.vocabulary;
  const WordPieceOptions how{.lower_case = !options.cased};
  if (file.empty()) return Tokenizer::train_word_piece(data.train.texts, {.size = options.vocabulary_size}, how);
  return file.extension() == ".txt" ? Tokenizer::word_piece(file, how) : Tokenizer::load(file);
}

/// The model's token of a name.
std::uint32_t special(const Tokenizer& tokenizer, const char* name) {
  if (const auto id = tokenizer.find(name)) return *id;
  fail("tokenizer", fmt::format("expected the token '{}' in it, got none", name), "BERT's vocabularies have it");
}

/// The size of the model that the flags ask for, but for its vocabulary. One to start from has its positions.
models::BertOptions size_of(const Options& options) {
  models::BertOptions size = configs().at(options.config);
  size.dropout = options.dropout;
  const fs::path& file = options.common.resume.empty() ? options.weights : options.common.resume;
  const std::int64_t wanted = options.longest.value_or(most_tokens);
  size.positions = wanted;
  if (!file.empty()) size.positions = samples::positions_in(file, size.width).value_or(wanted);
  if (options.longest.value_or(0) > size.positions) {
    fail("--max-length", fmt::format("expected at most {}, the positions of the model in {}, got {}", size.positions,
                                     file.string(), wanted));
  }
  return size;
}

/// A BERT with its data, ready to train.
class Classifier {
 public:
  Classifier(const Device& device, const Options& options, const models::BertOptions& size,
             const samples::TextData& texts, const Tokenizer& tokenizer, std::int64_t length, std::int64_t batch)
      : device_(device),
        options_(options),
        texts_(texts),
        classes_(static_cast<std::uint32_t>(texts.classes.size())),
        size_(size) {
    padding_ = special(tokenizer, "[PAD]");
    const auto set = [&](const samples::LabelledTexts& part) {
      return samples::text_set(options.common.data.string(), part, tokenizer, length, padding_, classes_);
    };
    data_ = {set(texts.train), set(texts.validation), texts.classes};
    test_ = set(texts.test);
    size_.vocabulary = tokenizer.size();
    for (const std::int64_t each : samples::bucket_lengths(data_.train, options.buckets)) {
      models_.push_back(std::make_unique<samples::TextClassifier>(batch, each, classes_, size_));
    }
  }

  /// Trains and tests as the flags ask; returns the exit code.
  int train(const std::string& precision_name, samples::Plan plan, const samples::CommonOptions& common) {
    const Precision precision = Precision::level(precision_name);
    Trainer trainer = Trainer::compile(device_, models_.back()->graph,
                                       samples::with_flags(common, plan, training_options(precision)));
    if (!options_.weights.empty() && common.resume.empty()) load(trainer);
    samples::TextPredictor predictor(trainer, models_);
    plan.samples = "texts";
    plan.test = "validation";
    plan.scores = [&]() -> std::map<std::string, double> {
      return {
          {"macro-F1", samples::score_of(predictor.classify(data_.test), texts_.validation.labels, classes_).macro_f1}};
    };
    plan.beside.weights = [&] { trainer.save_weights(common.save.parent_path() / samples::weights_name); };
    const int code = samples::train(trainer, device_, precision, data_, plan, common);
    if (code != samples::exit_done) return code;
    const std::vector<std::uint32_t> guesses = predictor.classify(test_, samples::alone_interrupted);
    if (guesses.empty()) return samples::exit_signal + samples::stop_signal();
    tested_ = samples::score_of(guesses, texts_.test.labels, classes_);
    samples::say("test accuracy {:.2f}%, macro-F1 {:.4f}\n", 100 * tested_.accuracy, tested_.macro_f1);
    return code;
  }

  const samples::Score& tested() const { return tested_; }

  /// The lengths that texts are padded to.
  std::vector<std::int64_t> lengths() const {
    std::vector<std::int64_t> all;
    for (const auto& model : models_) all.push_back(model->length);
    return all;
  }
  const Dataset& training_set() const { return data_.train; }

  /// What transformers reads of a model besides its weights.
  nlohmann::ordered_json config() const { return samples::bert_config(size_, padding_, texts_.classes); }

 private:
  TrainerOptions training_options(const Precision& precision) const {
    const std::int64_t steps =
        options_.plan.epochs * std::max<std::int64_t>(1, data_.train.count / options_.plan.batch_size);
    const std::int64_t warmup = std::max<std::int64_t>(1, steps / 10);
    const samples::TextClassifier& longest = *models_.back();
    TrainerOptions training{.loss = longest.loss, .metrics = {{"accuracy", longest.accuracy}}};
    const std::int64_t falling = std::max<std::int64_t>(1, steps - warmup);
    training.optimizer = AdamW{.rate = Schedule::polynomial(options_.learning_rate, falling).after_warmup(warmup)};
    training.decay_vectors = false;
    training.clip_norm = 1;
    if (options_.recompute) training.recompute = "bert/encoder/layer/*";
    training.precision = precision;
    training.model = fmt::format("bert-{}", options_.config);
    training.classes = data_.classes;
    training.feed = longest.feed();
    training.buckets = Buckets{.longest = longest.length};
    for (std::size_t i = 0; i + 1 < models_.size(); ++i) training.buckets->shorter.push_back(models_[i]->bucket());
    training.training_set = &data_.train;
    return training;
  }

  /// Reads weights that may lack the classifier, and have heads for other tasks.
  void load(Trainer& trainer) const {
    const LoadReport report =
        trainer.load_weights(options_.weights, {.strict = false, .other_names = models::bert_other_names});
    if (report.loaded.empty() || !report.mismatched.empty()) {
      fail(ErrorCode::bad_file, options_.weights.string(),
           report.mismatched.empty()
               ? "expected the weights of a BERT, got none of its names"
               : fmt::format("expected a BERT of --config {}, got {}", options_.config, report.mismatched.front()));
    }
    // Of the encoder all, and no layer more.
    for (const std::string& name : report.missing) {
      if (name.starts_with("bert.") && !name.starts_with("bert.pooler.")) refuse_config("lacks", name);
    }
    for (const std::string& name : report.unexpected) {
      if (name.starts_with("bert.encoder.") || name.starts_with("encoder.")) refuse_config("has more:", name);
    }
    samples::check_bert_config(options_.weights.parent_path(), size_);
    if (options_.common.quiet) return;
    samples::say("{}: {} tensors, {} are new{}{}\n", options_.weights.string(), report.loaded.size(),
                 report.missing.size(), report.missing.empty() ? "" : ": ", fmt::join(report.missing, ", "));
  }

  [[noreturn]] void refuse_config(const char* what, const std::string& name) const {
    fail(ErrorCode::bad_file, options_.weights.string(),
         fmt::format("expected a BERT of --config {}, got one that {} {}", options_.config, what, name));
  }

  const Device& device_;
  const Options& options_;
  const samples::TextData& texts_;
  std::uint32_t classes_;
  std::uint32_t padding_ = 0;
  samples::Data data_;  ///< validation in the place of the test set
  Dataset test_;
  models::BertOptions size_;
  samples::TextClassifiers models_;  ///< one for each length
  samples::Score tested_;
};

int compare(Classifier& classifier, const Options& options) {
  samples::CommonOptions common = options.common;
  struct Trained {
    std::string precision;
    double seconds;
    samples::Score score;
  };
  std::vector<Trained> trained;
  for (const std::string& precision : {std::string("float32"), options.precision}) {
    const auto start = std::chrono::steady_clock::now();
    const int code = classifier.train(precision, options.plan, common);
    if (code != samples::exit_done) return code;
    trained.push_back({precision, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                       classifier.tested()});
  }
  for (const Trained& run : trained) {
    samples::say("{}: {:.1f} s, {:.2f} times as fast as float32, test macro-F1 {:.4f}\n", run.precision, run.seconds,
                 trained.front().seconds / run.seconds, run.score.macro_f1);
  }
  return samples::exit_done;
}

void print_lengths(const Classifier& classifier) {
  const std::vector<std::int64_t> lengths = classifier.lengths();
  const auto percent = [&](const std::vector<std::int64_t>& of) {
    return 100 * samples::padding_share(classifier.training_set(), of);
  };
  samples::say("padded to {} tokens: {:.1f}% are padding", fmt::join(lengths, ", "), percent(lengths));
  if (lengths.size() > 1) samples::say(", {:.1f}% if all were padded to {}", percent({lengths.back()}), lengths.back());
  samples::say("\n");
}

/// The files of a model to start from.
std::vector<samples::NamedFile> inputs_of(const Options& options) {
  std::vector<samples::NamedFile> files = samples::tokenizer_files("--vocab", options.vocabulary);
  if (options.weights.empty()) return files;
  files.push_back({"--weights", options.weights});
  files.push_back({"--weights", options.weights.parent_path() / samples::config_name});
  return files;
}

int run(Options& options) {
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::name_checkpoints(options.common);
  samples::check_files(options.common, options.plan, inputs_of(options));
  const samples::TextData texts = samples::read_text_data(options.common.data, options.common.limit);
  const Tokenizer tokenizer = tokenizer_of(options, texts);
  const models::BertOptions size = size_of(options);
  const std::int64_t most = std::min(options.longest.value_or(most_tokens), size.positions);
  const std::int64_t length = std::min(most, samples::longest_text(texts, tokenizer));
  const Device device = Device::open(options.common.device);
  if (!options.common.quiet) {
    samples::say("{} texts to train on, {} to validate, {} to test; {} tokens, at most {} in a text\n",
                 texts.train.texts.size(), texts.validation.texts.size(), texts.test.texts.size(), tokenizer.size(),
                 length);
  }
  Classifier classifier(device, options, size, texts, tokenizer, length, batch);
  if (!options.common.quiet) print_lengths(classifier);
  if (options.compare) return compare(classifier, options);
  options.plan.beside.description = [&] {
    const fs::path folder = options.common.save.parent_path();
    samples::save_tokenizer(folder, tokenizer);
    samples::save_vocabulary(folder, tokenizer);
    samples::write_config(folder, classifier.config());
  };
  return classifier.train(options.precision, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a BERT to classify short texts, from its weights or from scratch.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
