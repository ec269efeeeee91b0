// Trains a convolutional network on Fashion-MNIST in f16 or bf16, with f32 master weights.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>

#include "models/fashion_conv.h"
#include "samples/common/command_line.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::string precision;
  samples::Plan plan{.batch_size = 32, .epochs = 5};
  float loss_scale = 256;
  bool loss_scale_given = false;
  float learning_rate = 0.01F;
  bool float16_partials = false;
  bool dynamic_loss_scaling = false;
  std::string weights = "master";
  std::optional<std::uint32_t> classes;
  samples::CommonOptions common;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("precision", options.precision, "Compute in f16 (mixed), in bf16 (bfloat16) or in f32 (float32)")
      ->required()
      ->check(CLI::IsMember({"mixed", "bfloat16", "float32"}));
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_loss_scale(app, options.loss_scale, "What the loss is multiplied by (bfloat16 and float32: not at all)");
  samples::add_learning_rate(app, options.learning_rate, "Adam's learning rate");
  app.add_flag("--use-float16-partials", options.float16_partials, "Accumulate in f16 as well");
  app.add_flag("--dynamic-loss-scaling", options.dynamic_loss_scaling,
               "Start at the loss scaling factor, and let overflows lower it and good steps raise it");
  app.add_option("--weights", options.weights,
                 "Keep the weights in f32, or in what is computed in with stochastic rounding")
      ->check(CLI::IsMember({"master", "stochastic"}))
      ->capture_default_str();
  app.add_option("--classes", options.classes, "Number of labels in the data set (of IDX files: 10)")
      ->transform(samples::whole_number(2, 256));
  samples::add_common_options(app, options.common);
}

Precision precision_of(const Options& options) {
  Precision precision = Precision::level(options.precision);
  if (options.precision != "mixed" && options.float16_partials) {
    fail("precision", fmt::format("expected mixed with --use-float16-partials, got {}", options.precision));
  }
  if (options.precision == "float32" && options.weights == "stochastic") {
    fail("precision", "expected mixed or bfloat16 with --weights stochastic, got float32");
  }
  const bool scaled = options.precision == "mixed" || options.loss_scale_given;
  if (options.dynamic_loss_scaling) {
    precision.loss_scale = LossScale::dynamic(options.loss_scale);
  } else if (scaled) {
    precision.loss_scale = LossScale::fixed(options.loss_scale);
  }
  if (options.float16_partials) precision.partials = {DType::f16, DType::f16};
  if (options.weights == "stochastic") {
    precision.weights = precision.parameters;
    precision.rounding.weights = Rounding::stochastic;
  }
  return precision;
}

int run(Options& options) {
  const Precision precision = precision_of(options);
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::check_files(options.common, options.plan);
  const Device device = Device::open(options.common.device);
  const samples::Data data = samples::read_data(device, options.common, {.shape = {28, 28, 1}}, options.classes);

  Graph graph;
  Shape shape = data.train.sample_shape;
  shape.insert(shape.begin(), batch);
  const Tensor images = graph.input("images", shape);
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::fashion_conv(graph.root(), images, data.train.classes);
  Trainer trainer =
      Trainer::compile(device, graph,
                       samples::with_flags(options.common, options.plan,
                                           {.loss = cross_entropy(logits, labels),
                                            .metrics = {{"accuracy", accuracy(logits, labels)}},
                                            .optimizer = Adam{.rate = options.learning_rate, .epsilon = 1e-4F},
                                            .precision = precision,
                                            .model = "fashion_conv",
                                            .classes = data.classes,
                                            .feed = Feed{.samples = images, .labels = labels},
                                            .training_set = &data.train}));
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains two convolutions and a dense layer on Fashion-MNIST in mixed precision.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] {
    options.loss_scale_given = app.count("--loss-scaling-factor") > 0;
    return run(options);
  });
}
