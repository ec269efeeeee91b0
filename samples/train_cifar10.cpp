// Trains residual networks, or MobileNetV2, on CIFAR-10 with the usual recipe: random crops and flips, momentum (or
// Muon), weight decay, five epochs of warmup, and a rate that drops to a tenth after half and after three quarters of
// the epochs.
//
//   $ bin/train_cifar10 --fp16 --model resnet20 --steps 60 --best resnet20.safetensors
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/by_name.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::string model = "resnet50";
  samples::Plan plan{.batch_size = 128, .epochs = 200};
  std::string optimizer = "sgd";
  std::optional<float> learning_rate;
  std::int64_t memory_limit = 0;  ///< MiB
  float ema_decay = 0;
  std::string recompute;
  bool gpu = false;
  bool fp16 = false;
  bool bf16 = false;
  bool loss_scaling = false;
  samples::CommonOptions common;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("-m,--model", options.model,
                 "resnet8, resnet14, ... resnet56; resnet18, resnet34, resnet50 or mobilenet_v2")
      ->capture_default_str();
  app.add_option("-n,--steps", options.plan.epochs, "Epochs from the start of training")
      ->transform(samples::whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "sgd with momentum; or muon, with adamw for the rest")
      ->check(CLI::IsMember({"sgd", "muon"}))
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "The learning rate after the warmup: 0.1, or with muon 0.005")
      ->check(samples::number_above(0, 1000));
  app.add_option("--batch-size", options.plan.batch_size, "Images in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--memory-limit", options.memory_limit,
                 "MiB of device memory to take at most, by computing activations again and by micro-batches; 0: what "
                 "the device has")
      ->transform(samples::whole_number(0, 1 << 24))
      ->capture_default_str();
  samples::add_rank_options(app, options.plan);
  app.add_option("--average", options.ema_decay,
                 "Test and keep averages of the weights, which each update moves towards them by 1 minus this")
      ->check(CLI::Range(0.0, 0.999999));
  app.add_option("--recompute", options.recompute,
                 "Compute activations again instead of keeping them, in scopes of this pattern: \"layer?/?\"");
  app.add_flag("-p,--gpu", options.gpu, "Refuse to train on a CPU")->group(samples::running_group);
  app.add_flag("--fp16", options.fp16, "Compute in f16, with f32 master weights and a loss scale of 128");
  app.add_flag("--bf16", options.bf16, "Compute in bf16, with f32 master weights and no loss scale")
      ->excludes("--fp16");
  app.add_flag("-s,--loss_scaling", options.loss_scaling, "With --fp16, a loss scale that adapts");
  app.add_option("--best", options.plan.best, "File for the weights of the epoch that tests best")
      ->group(samples::files_group);
  samples::add_common_options(app, options.common, samples::cifar10);
}

Precision precision_of(const Options& options) {
  if (!options.fp16) {
    if (options.loss_scaling) fail("precision", "expected --fp16 with --loss_scaling, got none");
    return options.bf16 ? Precision::bfloat16() : Precision::float32();
  }
  Precision precision = Precision::mixed();
  if (!options.loss_scaling) precision.loss_scale = LossScale::fixed(128);
  return precision;
}

Schedule schedule(const Options& options, std::int64_t epoch_steps) {
  const std::int64_t epochs = options.plan.epochs;
  const std::int64_t steps = epochs * epoch_steps;
  std::vector<std::int64_t> milestones{epochs / 2 * epoch_steps, epochs * 3 / 4 * epoch_steps};
  if (epochs < 4) milestones.clear();
  const float rate = options.learning_rate.value_or(options.optimizer == "muon" ? 0.005F : 0.1F);
  return Schedule::multi_step(rate, milestones, 0.1F, steps)
      .with_warmup(std::min<std::int64_t>(5, epochs / 2) * epoch_steps);
}

/// Muon leaves the first and the last layer to AdamW.
Optimizer optimizer(const Options& options, std::int64_t epoch_steps) {
  const Schedule rate = schedule(options, epoch_steps);
  if (options.optimizer == "muon") return Muon{.rate = rate, .others_patterns = {"conv1/*", "fc/*"}};
  return Sgd{.rate = rate, .momentum = 0.9F, .weight_decay = 5e-4F};
}

Device open_device(const Options& options) {
  Device device = Device::open(options.common.device);
  if (options.gpu && device.info().type == "cpu") {
    fail("device", fmt::format("expected a GPU with --gpu, got {}", device.info().name), "bin/devices lists them");
  }
  return device;
}

/// The model at a batch size, and how it is trained.
TrainerOptions training(Graph& graph, std::int64_t batch, const Options& options, const Precision& precision,
                        const samples::Data& data) {
  const Tensor images = graph.input("images", {batch, 32, 32, 3});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::image_model(graph.root(), images, options.model, data.train.classes);
  const Feed feed{.samples = images,
                  .labels = labels,
                  .mean = {0.4914F, 0.4822F, 0.4465F},
                  .stddev = {0.2470F, 0.2435F, 0.2616F},
                  .augmentation = {.crop_padding = 4, .flip = 0.5F}};
  const std::int64_t epoch_steps = std::max<std::int64_t>(1, data.train.count / options.plan.batch_size);
  return {.loss = cross_entropy(logits, labels),
          .metrics = {{"accuracy", accuracy(logits, labels)}},
          .optimizer = optimizer(options, epoch_steps),
          .ema_decay = options.ema_decay,
          .recompute = options.recompute,
          .precision = precision,
          .model = options.model,
          .classes = data.classes,
          .feed = feed,
          .training_set = &data.train,
          .log =
              [quiet = options.common.quiet](const std::string& line) {
                if (!quiet && line.starts_with("memory: ")) samples::say("{}\n", line);
              },
          .memory_limit = static_cast<std::uint64_t>(options.memory_limit) << 20};
}

int run(Options& options) {
  const Precision precision = precision_of(options);
  if (options.ema_decay > 0) options.plan.weights = Weights::averaged;
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::check_files(options.common, options.plan);
  const Device device = open_device(options);
  const samples::Data data = samples::read_data(device, options.common, {.shape = {32, 32, 3}});

  Trainer trainer = Trainer::compile(
      device,
      [&](Graph& graph, std::int64_t size) {
        return samples::with_flags(options.common, options.plan, training(graph, size, options, precision, data));
      },
      batch);
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a residual network on CIFAR-10 in f32 or in mixed precision.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
