// Trains a residual network on CIFAR-10 with f16 or bf16 weights and no master copy. Every update is rounded
// stochastically, so that small updates are not lost.
//
//   $ bin/stochastic_rounding float16 20 --data ~/data/cifar10
//   $ bin/stochastic_rounding float16 20 --data ~/data/cifar10 --rounding nearest    (to see the difference)
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>

#include "models/by_name.h"
#include "models/resnet_cifar.h"
#include "samples/common/command_line.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::string precision;
  std::int64_t depth = 0;
  samples::Plan plan{.batch_size = 32, .epochs = 5};
  float loss_scale = 256;
  bool loss_scale_given = false;
  float learning_rate = 0.01F;
  std::optional<Rounding> rounding;
  bool float16_partials = false;
  samples::CommonOptions common;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("precision", options.precision, "Weights and arithmetic in f16, in bf16 (norms in f32) or in f32")
      ->required()
      ->check(CLI::IsMember({"float16", "bfloat16", "float32"}));
  app.add_option("depth", options.depth, "Layers of the network: 6N + 2, as 8, 14, 20 or 26")
      ->required()
      ->transform(samples::whole_number(8, models::deepest_resnet_cifar));
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_loss_scale(app, options.loss_scale, "What the loss is multiplied by (bfloat16 and float32: not at all)");
  samples::add_learning_rate(app, options.learning_rate, "The learning rate; the loss scale is divided out of it");
  samples::add_rounding(app, options.rounding,
                        "Of updated weights (float16, bfloat16: stochastic, so that small updates are not lost)");
  app.add_flag("--use-float16-partials", options.float16_partials, "Accumulate in f16 as well");
  samples::add_common_options(app, options.common, samples::cifar10);
}

Precision precision_of(const Options& options) {
  const bool half = options.precision == "float16";
  if (!half && options.float16_partials) {
    fail("precision", fmt::format("expected float16 with --use-float16-partials, got {}", options.precision));
  }
  if (options.precision == "float32" && options.rounding) {
    fail("precision", "expected float16 or bfloat16 with --rounding, got float32");
  }
  Precision precision =
      options.precision == "bfloat16" ? Precision::bfloat16(DType::bf16) : Precision::level(options.precision);
  if (half || options.loss_scale_given) precision.loss_scale = LossScale::fixed(options.loss_scale);
  if (options.rounding) precision.rounding.weights = *options.rounding;
  if (options.float16_partials) precision.partials = {DType::f16, DType::f16};
  return precision;
}

int run(Options& options) {
  const Precision precision = precision_of(options);
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::check_files(options.common, options.plan);
  const Device device = Device::open(options.common.device);
  const samples::Data data = samples::read_data(device, options.common, {.shape = {32, 32, 3}});

  Graph graph;
  const Tensor images = graph.input("images", {batch, 32, 32, 3});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::resnet_cifar(graph.root(), images, options.depth, data.train.classes);

  // The mean and std of the training set's three colour channels.
  const Feed feed{
      .samples = images, .labels = labels, .mean = {0.4914F, 0.4822F, 0.4465F}, .stddev = {0.2470F, 0.2435F, 0.2616F}};
  Trainer trainer =
      Trainer::compile(device, graph,
                       samples::with_flags(options.common, options.plan,
                                           {.loss = cross_entropy(logits, labels),
                                            .metrics = {{"accuracy", accuracy(logits, labels)}},
                                            .optimizer = Sgd{.rate = options.learning_rate, .momentum = 0.9F},
                                            .precision = precision,
                                            .model = models::resnet_cifar_name(options.depth),
                                            .classes = data.classes,
                                            .feed = feed,
                                            .training_set = &data.train}));
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a residual network on CIFAR-10 in 16 bits, with stochastic rounding and no f32 copy of the weights.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] {
    options.loss_scale_given = app.count("--loss-scaling-factor") > 0;
    return run(options);
  });
}
