// Trains the last layer of a pretrained ResNet-18 on Fashion-MNIST, in f16. The device resizes grey images of 28x28 to
// 224x224 and copies them to three channels. All other layers are frozen: they have no gradients and no moments, and no
// activations are kept for either.
//
//   $ bin/finetune_resnet18 --weights resnet18.safetensors
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/layers.h"
#include "models/resnet.h"
#include "samples/common/command_line.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::filesystem::path weights;
  bool random_weights = false;
  bool stochastic_rounding = false;
  samples::Plan plan{.batch_size = 12, .epochs = 5};
  float learning_rate = 0.001F;
  float loss_scale = 100;
  samples::CommonOptions common;
};

void add_options(CLI::App& app, Options& options) {
  auto* weights = app.add_option("--weights", options.weights, "Weights of torchvision's ResNet-18, as safetensors")
                      ->group(samples::files_group);
  app.add_flag("--random-weights", options.random_weights, "Do without: fits the last layer to random features")
      ->excludes(weights)
      ->group(samples::files_group);
  app.add_flag("--stochastic-rounding", options.stochastic_rounding,
               "Keep the weights in f16 alone, rounded at random, instead of in f32 with an f16 copy");
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_learning_rate(app, options.learning_rate, "AdamW's learning rate");
  samples::add_loss_scale(app, options.loss_scale, "What the loss is multiplied by");
  samples::add_common_options(app, options.common);
}

void check_weights(const Options& options) {
  const bool given = !options.weights.empty() || options.random_weights;
  const bool resumed = !options.common.resume.empty();
  if (given && resumed) {
    fail("weights", "expected --weights FILE, --random-weights or --resume FILE, got two of them",
         "a checkpoint to resume has all weights");
  }
  if (given || resumed) return;
  fail("weights", "expected --weights FILE, --random-weights or --resume FILE, got none of them",
       "three lines of Python make the file: from torchvision.models import resnet18; "
       "from safetensors.torch import save_file; "
       "save_file(resnet18(weights=\"DEFAULT\").state_dict(), \"resnet18.safetensors\")");
}

Precision precision_of(const Options& options) {
  Precision precision = options.stochastic_rounding ? Precision::float16() : Precision::mixed();
  precision.loss_scale = LossScale::fixed(options.loss_scale);
  return precision;
}

/// The last layer is new: the file's has the 1,000 classes of ImageNet.
void load_weights(Trainer& trainer, const Options& options) {
  if (options.weights.empty()) return;
  LoadOptions load;
  load.ignored.emplace_back("fc.*");
  const LoadReport report = trainer.load_weights(options.weights, load);
  for (const std::string& name : report.not_finite) fmt::print(stderr, "warning: {} holds NaN or infinity\n", name);
}

int run(Options& options) {
  check_weights(options);
  const std::int64_t batch = samples::micro_batch(options.plan);
  const Precision precision = precision_of(options);
  samples::check_files(options.common, options.plan, {{"--weights", options.weights}});
  const Device device = Device::open(options.common.device);
  const samples::Data data = samples::read_data(device, options.common, {.shape = {224, 224, 3}});

  Graph graph;
  const Tensor images = graph.input("images", {batch, 224, 224, 3});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::resnet(graph.root(), images, 18, data.train.classes);
  Trainer trainer = Trainer::compile(
      device, graph,
      samples::with_flags(options.common, options.plan,
                          {.loss = cross_entropy(logits, labels),
                           .metrics = {{"accuracy", accuracy(logits, labels)}},
                           .optimizer = AdamW{.rate = options.learning_rate},
                           .groups = {{.pattern = "fc/*"}, {.pattern = "*", .frozen = true}},
                           .precision = precision,
                           .model = "resnet18",
                           .classes = data.classes,
                           .feed = Feed{.samples = images, .labels = labels, .mean = {0.5F}, .stddev = {0.5F}},
                           .training_set = &data.train}));
  load_weights(trainer, options);
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fits the last layer of a pretrained ResNet-18 to Fashion-MNIST; all other layers are frozen.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
