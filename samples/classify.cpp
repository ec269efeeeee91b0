// Classifies images with a model that another sample trained:
//
//   $ bin/train_cifar10 --model resnet20 --steps 20 --best resnet20.safetensors
//   $ bin/classify resnet20.safetensors cat.png ship.jpg --sheet sheet.png
//   cat.png
//      91.3%  cat
//       4.0%  dog
//       ...
//
// The checkpoint stores which model it holds and its input format; batch norm is folded into the convolutions.
#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/by_name.h"
#include "samples/common/checkpoint.h"
#include "samples/common/command_line.h"
#include "samples/common/contact_sheet.h"
#include "samples/common/models.h"

using namespace halfstep;

namespace {

struct Options {
  std::filesystem::path model;
  std::vector<std::filesystem::path> images;
  std::filesystem::path sheet;
  std::string device;
};

/// A model with its weights that classifies images of bytes, a batch at a time.
class Classifier {
 public:
  Classifier(const Device& device, const samples::ModelDescription& model, const std::filesystem::path& weights,
             std::int64_t batch)
      : model_(model), shape_{batch, model.input[0], model.input[1], model.input[2]}, predictor_(compile(device)) {
    predictor_.load_weights(weights);
  }

  /// All classes of every image, the most likely first.
  std::vector<std::vector<samples::Guess>> guesses(const Dataset& images) {
    std::vector<std::vector<samples::Guess>> all;
    const auto size = static_cast<std::size_t>(images.sample_bytes());
    for (std::int64_t first = 0; first < images.count; first += shape_[0]) {
      const std::int64_t count = std::min(shape_[0], images.count - first);
      std::vector<float> values(static_cast<std::size_t>(elements(shape_)));
      std::copy_n(images.samples.begin() + first * static_cast<std::int64_t>(size),
                  count * static_cast<std::int64_t>(size), values.begin());
      const std::vector<float> logits = predictor_.run({{"bytes", std::span<const float>(values)},
                                                        {"factor", std::span<const float>(factor_)},
                                                        {"offset", std::span<const float>(offset_)}});
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t classes = model_.classes.size();
        all.push_back(ranked(std::span(logits).subspan(static_cast<std::size_t>(i) * classes, classes)));
      }
    }
    return all;
  }

 private:
  Predictor compile(const Device& device) {
    const std::int64_t channels = shape_.back();
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      const float stddev = model_.stddev[std::min(c, model_.stddev.size() - 1)];
      factor_.push_back(1 / (255 * stddev));
      offset_.push_back(-model_.mean[std::min(c, model_.mean.size() - 1)] / stddev);
    }
    Graph graph;
    const Tensor bytes = graph.input("bytes", shape_);
    const Tensor images = add(mul(bytes, graph.input("factor", {channels})), graph.input("offset", {channels}));
    const Tensor logits =
        models::image_model(graph.root(), images, model_.name, static_cast<std::int64_t>(model_.classes.size()));
    return Predictor::compile(device, graph, logits);
  }

  std::vector<samples::Guess> ranked(std::span<const float> logits) const {
    const auto top = static_cast<double>(*std::ranges::max_element(logits));
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) - top);
    std::vector<samples::Guess> guesses;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      guesses.push_back({model_.classes[i], std::exp(static_cast<double>(logits[i]) - top) / total});
    }
    std::ranges::stable_sort(guesses, std::ranges::greater{}, &samples::Guess::probability);
    return guesses;
  }

  samples::ModelDescription model_;
  Shape shape_;
  std::vector<float> factor_;
  std::vector<float> offset_;
  Predictor predictor_;
};

void print(const ImageFolder& images, const std::vector<std::vector<samples::Guess>>& guesses) {
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    fmt::print("{}\n", images.files[i].string());
    for (std::size_t k = 0; k < std::min(most, guesses[i].size()); ++k) {
      fmt::print("  {:6.1f}%  {}\n", 100 * guesses[i][k].probability, samples::printable(guesses[i][k].name));
    }
  }
}

int run(const Options& options) {
  constexpr std::int64_t largest_batch = 32;
  std::vector<samples::NamedFile> inputs{{"model", options.model}};
  for (const std::filesystem::path& image : options.images) inputs.push_back({"images", image});
  samples::check_outputs({{"--sheet", options.sheet}}, inputs);
  const CheckpointSummary summary = summarize_checkpoint(options.model);
  const samples::ModelDescription model = samples::describe_model(summary, options.model.string());
  samples::warn_of_values_not_finite(options.model, summary);
  const Device device = Device::open(options.device);
  const ImageFolder images = read_images(
      device, options.images,
      {.height = model.input[0], .width = model.input[1], .channels = model.input[2], .corrupt = CorruptFiles::skip});
  for (const std::string& line : images.skipped) fmt::print(stderr, "error: {}\n", line);
  if (images.data.count > 0) {
    Classifier classifier(device, model, options.model, std::min(largest_batch, images.data.count));
    const std::vector<std::vector<samples::Guess>> guesses = classifier.guesses(images.data);
    print(images, guesses);
    if (!options.sheet.empty()) samples::write_contact_sheet(options.sheet, images, guesses);
  }
  return images.skipped.empty() ? samples::exit_done : samples::exit_bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Says what images show, by a model that another sample trained and saved.");
  Options options;
  app.add_option("model", options.model, "Checkpoint written by a sample with --save or --best")->required();
  app.add_option("images", options.images, "PNG or JPEG files, of any size")->required();
  app.add_option("--sheet", options.sheet, "PNG file to draw the images and their likeliest classes on");
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them");
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
