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

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "samples/common/checkpoint.h"
#include "samples/common/classifier.h"
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

void print(const ImageFolder& images, const std::vector<std::vector<samples::Guess>>& guesses) {
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    fmt::print("{}\n", samples::printable(images.files[i].string()));
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
    samples::Classifier classifier(device, model, options.model, std::min(largest_batch, images.data.count));
    const std::vector<std::vector<samples::Guess>> guesses = classifier.guesses(images.data);
    print(images, guesses);
    std::vector<std::string> names;
    for (const std::filesystem::path& file : images.files) names.push_back(file.filename().string());
    if (!options.sheet.empty()) samples::write_contact_sheet(options.sheet, images.data, names, guesses);
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
