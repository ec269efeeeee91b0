// Trains a model on a folder of images, in PNG or JPEG files of any size, with one subfolder per class:
//
//   pets/train/cat/*.jpg  pets/train/dog/*.jpg  pets/val/cat/*.jpg  pets/val/dog/*.jpg
//   pets/cat/*.jpg        pets/dog/*.jpg        (a fifth of each class is then drawn to test on)
//
//   $ bin/train_images pets --model resnet20 --size 64 --epochs 20 --save pets.safetensors
//   $ bin/classify pets.safetensors photo.jpg
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "models/by_name.h"
#include "samples/common/command_line.h"
#include "samples/common/image_data.h"
#include "samples/common/say.h"
#include "samples/common/training.h"

using namespace halfstep;

namespace {

struct Options {
  std::string model = "resnet20";
  std::int64_t size = 64;
  bool grey = false;
  double test_share = 0.2;
  bool skip_corrupt = false;
  std::optional<std::int64_t> crop_padding;
  float flip = 0.5F;
  std::string precision = "mixed";
  samples::Plan plan{.batch_size = 32, .epochs = 20};
  float learning_rate = 0.002F;
  samples::CommonOptions common;
};

void add_options(CLI::App& app, Options& options) {
  samples::add_common_options(app, options.common);
  app.remove_option(app.get_option("--data"));
  app.add_option("folder,--data", options.common.data,
                 "Folder with train and val (or test), or with a subfolder of images for each class")
      ->required();
  app.add_option("-m,--model", options.model,
                 "resnet8, resnet14, ... resnet56; resnet18, resnet34, resnet50, mobilenet_v2, lenet5, fashion_conv or "
                 "fashion_cnn")
      ->capture_default_str();
  app.add_option("--size", options.size, "Height and width in pixels that every image is resized to")
      ->transform(samples::whole_number(8, 1024))
      ->capture_default_str();
  app.add_flag("--grey", options.grey, "Take grey values in place of colours");
  app.add_option("--test-share", options.test_share, "Share of each class to test on, where no folder is for that")
      ->check(samples::number_above(0, 0.9))
      ->capture_default_str();
  app.add_flag("--skip-corrupt", options.skip_corrupt,
               "Leave out files that cannot be decoded, and accept classes without images (CorruptFiles::skip)");
  app.add_option("--crop-padding", options.crop_padding,
                 "Pixels of black put about an image before a window is cropped from it (an eighth of --size)")
      ->transform(samples::whole_number(0, 1024));
  app.add_option("--flip", options.flip, "Probability of mirroring an image left and right")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  samples::add_plan_options(app, options.plan);
  samples::add_rank_options(app, options.plan);
  samples::add_learning_rate(app, options.learning_rate, "AdamW's highest learning rate, after a tenth of the steps");
  app.add_option("--best", options.plan.best, "File for the weights of the epoch that tests best")
      ->group(samples::files_group);
}

/// Mean and standard deviation of each channel, with bytes scaled to 0..1.
void normalise(Feed& feed, const Dataset& set) {
  const auto channels = static_cast<std::size_t>(set.sample_shape.back());
  std::array<double, 3> sum{};
  std::array<double, 3> squares{};
  for (std::size_t i = 0; i < set.samples.size(); ++i) {
    const double value = set.samples[i] / 255.0;
    sum[i % channels] += value;
    squares[i % channels] += value * value;
  }
  feed.mean.clear();
  feed.stddev.clear();
  const double count = static_cast<double>(set.samples.size()) / static_cast<double>(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / count;
    feed.mean.push_back(static_cast<float>(mean));
    // If all images are equal, the variance is 0: avoid the division by it.
    const double variance = std::max(squares[c] / count - mean * mean, 1e-4);
    feed.stddev.push_back(static_cast<float>(std::sqrt(variance)));
  }
}

void check_classes(const samples::Data& data, const Options& options) {
  if (data.classes.size() > 1) return;
  fail("data", fmt::format("expected subfolders for two or more classes in {}, got one, {}",
                           options.common.data.string(), data.classes.front()));
}

int run(Options& options) {
  const Precision precision = Precision::level(options.precision);
  const std::int64_t batch = samples::micro_batch(options.plan);
  samples::check_files(options.common, options.plan);
  const Device device = Device::open(options.common.device);
  const CorruptFiles corrupt = options.skip_corrupt ? CorruptFiles::skip : CorruptFiles::refuse;
  const Shape shape{options.size, options.size, options.grey ? 1 : 3};
  const samples::Data data = samples::read_image_data(
      device, options.common, {.shape = shape, .test_share = options.test_share, .corrupt = corrupt});
  check_classes(data, options);
  if (!options.common.quiet) {
    samples::say("{} classes, {} images to train on, {} to test on\n", data.classes.size(), data.train.count,
                 data.test.count);
  }

  Graph graph;
  const Tensor images = graph.input("images", {batch, shape[0], shape[1], shape[2]});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::image_model(graph.root(), images, options.model, data.train.classes);
  Feed feed{.samples = images, .labels = labels};
  normalise(feed, data.train);
  feed.augmentation = {.crop_padding = options.crop_padding.value_or(options.size / 8), .flip = options.flip};
  const std::int64_t steps =
      options.plan.epochs * std::max<std::int64_t>(1, data.train.count / options.plan.batch_size);
  Trainer trainer = Trainer::compile(
      device, graph,
      samples::with_flags(options.common, options.plan,
                          {.loss = cross_entropy(logits, labels),
                           .metrics = {{"accuracy", accuracy(logits, labels)}},
                           .optimizer = AdamW{.rate = Schedule::cosine(options.learning_rate, steps / 10, steps)},
                           .precision = precision,
                           .model = options.model,
                           .classes = data.classes,
                           .feed = feed,
                           .training_set = &data.train}));
  return samples::train(trainer, device, precision, data, options.plan, options.common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a model on a folder of images, with a subfolder for each class.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
