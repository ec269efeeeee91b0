// Trains LeNet-5 at each of the four precision levels, with any layer in another type.
//
//   $ bin/lenet5 --amp-level O2 --to-float dense3=float32 --epochs 1
//   llvmpipe (LLVM 15.0.6, 256 bits), mixed, 61706 parameters
//   ...
//   epoch 1/1  loss 0.7351  test accuracy 84.12%
//
// Before it starts, it prints which operators do not use f32, and which hyperparameters f16 cannot represent.
#include "models/lenet5.h"

#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::string level = "O2";
  std::vector<std::string> to_float;
  std::string loss_scale;
  std::optional<Rounding> rounding;
  bool saturate = false;
  bool float16_partials = false;
  bool gradient_scales = false;
  bool explain = false;
  samples::Plan plan{.batch_size = 32, .epochs = 10};
  float learning_rate = 0.01F;
  float momentum = 0.9F;
  samples::CommonOptions common;
};

std::vector<std::string> levels() {
  std::vector<std::string> levels{"O0", "O1", "O2", "O3"};
  for (std::string& name : Precision::names()) levels.push_back(std::move(name));
  return levels;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--amp-level", options.level,
                 "O0: float32, O1: autocast, O2: mixed, O3: float16; or a name, as bfloat16 or float8")
      ->check(CLI::IsMember(levels()))
      ->capture_default_str();
  app.add_option("--to-float", options.to_float, "A layer, or a pattern of them, in another type: conv1=float16");
  app.add_option("--loss-scale", options.loss_scale, "none, fixed:S or dynamic, in place of the level's own");
  samples::add_rounding(app, options.rounding,
                        "Of all that is stored in 16 bits (O3: of weights stochastic, of all else nearest)");
  app.add_flag("--saturate", options.saturate,
               "Store the largest number, of f16 65504, for what is too large, not infinity");
  app.add_flag("--use-float16-partials", options.float16_partials, "Keep the sums of products in f16");
  app.add_flag("--gradient-scales", options.gradient_scales, "Store each tensor's gradient times a scale of its own");
  CLI::Option* const explain =
      app.add_flag("--explain", options.explain, "Print what every operator stores, computes and sums in, and stop")
          ->group(samples::running_group);
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_learning_rate(app, options.learning_rate, "Rate of gradient descent");
  app.add_option("--momentum", options.momentum, "Its momentum")->capture_default_str();
  samples::add_common_options(app, options.common);
  for (const char* flag : {"--epochs", "--save", "--save-every", "--resume", "--json", "--log", "--plot",
                           "--tensorboard", "--trace", "--graph", "--pictures"}) {
    explain->excludes(app.get_option(flag));
  }
  app.get_option("--data")->description(
      "Folder with a data set in IDX files, or with images by class, or random for 1,024 random samples");
}

/// Parses "conv1=float16": a layer and its type.
void set_layer(Precision& precision, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string type = equals == std::string::npos ? "" : text.substr(equals + 1);
  const std::map<std::string, DType> types{{"float32", DType::f32}, {"float16", DType::f16}, {"bfloat16", DType::bf16}};
  if (equals == 0 || !types.contains(type)) {
    fail("--to-float", fmt::format("expected LAYER=float16, LAYER=bfloat16 or LAYER=float32, got '{}'", text));
  }
  precision.layer(text.substr(0, equals), types.at(type));
}

LossScale loss_scale_of(const std::string& text) {
  if (text == "none") return LossScale::none();
  if (text == "dynamic") return LossScale::dynamic();
  float scale = 0;
  if (text.starts_with("fixed:") && CLI::detail::lexical_cast(text.substr(6), scale)) return LossScale::fixed(scale);
  fail("--loss-scale", fmt::format("expected none, fixed:S or dynamic, got '{}'", text));
}

Precision precision_of(const Options& options) {
  Precision precision = Precision::level(options.level);
  for (const std::string& layer : options.to_float) set_layer(precision, layer);
  if (!options.loss_scale.empty()) precision.loss_scale = loss_scale_of(options.loss_scale);
  if (options.rounding) {
    precision.rounding.weights = *options.rounding;
    precision.rounding.activations = *options.rounding;
    precision.rounding.gradients = *options.rounding;
  }
  if (options.saturate) precision.overflow = Overflow::saturate;
  if (options.float16_partials) precision.partials = {DType::f16, DType::f16};
  if (options.gradient_scales) precision.gradient_scales = GradientScales::per_tensor;
  return precision;
}

/// Noise with labels, to measure speed and memory without a data set.
Dataset random_set(std::int64_t count, std::uint64_t seed) {
  Dataset set;
  set.name = "random";
  set.sample_shape = {32, 32, 1};
  set.count = count;
  set.classes = 10;
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < count * set.sample_bytes(); ++i)
    set.samples.push_back(static_cast<std::uint8_t>(random()));
  for (std::int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::uint32_t>(random() % set.classes));
  return set;
}

samples::Data read_data(const Device& device, const samples::CommonOptions& common) {
  if (common.data != "random") return samples::read_data(device, common, {.shape = {28, 28, 1}});
  const std::int64_t count = std::min<std::int64_t>(1024, common.limit.value_or(1024));
  return {random_set(count, common.seed), random_set(count, common.seed + 1), samples::class_names(common, 10)};
}

int run(Options& options) {
  const Precision precision = precision_of(options);
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::check_files(options.common, options.plan);
  const Device device = Device::open(options.common.device);
  const samples::Data data = read_data(device, options.common);

  Graph graph;
  Shape shape = data.train.sample_shape;
  shape.insert(shape.begin(), batch);
  const Tensor images = graph.input("images", shape);
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::lenet5(graph.root(), images, data.train.classes, normal(0.02F));
  TrainerOptions training{.loss = cross_entropy(logits, labels)};
  training.metrics = {{"accuracy", accuracy(logits, labels)}};
  training.optimizer = Sgd{.rate = options.learning_rate, .momentum = options.momentum};
  training.precision = precision;
  training.model = "lenet5";
  training.classes = data.classes;
  training.feed = Feed{.samples = images, .labels = labels};
  training.training_set = &data.train;
  if (!options.common.quiet) training.log = [](const std::string& line) { samples::say("{}\n", line); };
  Trainer trainer =
      Trainer::compile(device, graph, samples::with_flags(options.common, options.plan, std::move(training)));
  if (options.explain) {
    samples::say("{}", trainer.inspect().explain());
    return samples::exit_done;
  }
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains LeNet-5 at a chosen level of precision.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
