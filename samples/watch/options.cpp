#include "samples/watch/options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "samples/common/command_line.h"
#include "samples/common/say.h"

namespace samples {
namespace {

/// A check for CLI11: a file name that ends in one of these.
CLI::Validator ends_in(std::vector<std::string> endings) {
  std::string list = fmt::format("{}", fmt::join(endings, ", "));
  const auto check = [endings = std::move(endings), list](const std::string& text) -> std::string {
    const std::string ending = std::filesystem::path(text).extension().string();
    if (text.empty() || std::ranges::count(endings, ending) > 0) return {};
    return fmt::format("expected a file name that ends in one of {}, got {}", list, text);
  };
  return {check, fmt::format("({})", list), "ends_in"};
}

/// Whoever draws what is predicted gives a model the set's images as they are.
void check_pictures(const WatchOptions& options, const halfstep::TrainerOptions& training) {
  if (options.pictures.empty() || !training.feed || training.training_set == nullptr) return;
  const halfstep::Shape& batch = training.feed->samples.shape();
  const halfstep::Shape taken(batch.begin() + 1, batch.end());
  const halfstep::Shape& stored = training.training_set->sample_shape;
  if (stored == taken) return;
  halfstep::fail("--pictures", fmt::format("expected a set whose images have the model's shape, {}, got {}",
                                           halfstep::to_string(taken), halfstep::to_string(stored)));
}

}  // namespace

void add_watch_options(CLI::App& app, WatchOptions& options, bool classifies_images) {
  constexpr const char* group = "Watching";
  app.add_option("--log", options.log, "JSON lines: a record of each step, test and decision; a resumed run appends")
      ->group(group);
  app.add_option("--plot", options.plot, "Picture of loss, accuracy, rate, loss scale, gradient norm, skipped steps")
      ->check(ends_in({".svg", ".png"}))
      ->group(group);
  app.add_option("--tensorboard", options.tensorboard, "Folder for TensorBoard's event files")->group(group);
  app.add_option("--trace", options.trace,
                 "Timeline of the first steps of this run on device, host and loader, for ui.perfetto.dev")
      ->group(group);
  app.add_option("--graph", options.graph, "Graph of the step, with shapes, bytes and types: .svg, .dot or .json")
      ->check(ends_in({".svg", ".dot", ".json"}))
      ->group(group);
  CLI::Option* const watch =
      app.add_option("--watch", options.tensors, "Tensors whose exponents are recorded, by pattern: \"*.gradient\"")
          ->group(group);
  app.add_option("--watch-every", options.tensors_every, "Steps between two of these records")
      ->transform(whole_number(1, 1'000'000'000))
      ->capture_default_str()
      ->needs(watch)
      ->group(group);
  if (!classifies_images) return;
  app.add_option("--pictures", options.pictures,
                 "Folder for pictures of what is predicted for some of the test's images, after each test")
      ->group(group);
}

std::vector<NamedFile> watched_files(const WatchOptions& options) {
  return {{"--log", options.log}, {"--plot", options.plot}, {"--trace", options.trace}, {"--graph", options.graph}};
}

halfstep::TrainerOptions watched(const WatchOptions& options, halfstep::TrainerOptions training) {
  if (!options.tensors.empty() && options.log.empty() && options.tensorboard.empty()) {
    halfstep::fail("--watch", "expected --log or --tensorboard, which its records are written to, got neither");
  }
  if (training.ranks.size() > 1 && !options.trace.empty()) {
    halfstep::fail("--trace", fmt::format("expected one process, got {} ranks", training.ranks.size()));
  }
  if (training.ranks.size() > 1) {  // whatever else a program prints of decisions
    training.log = [log = std::move(training.log)](const std::string& line) {
      if (line.starts_with("ranks: ")) return say("{}\n", line);
      if (log) log(line);
    };
  }
  check_pictures(options, training);
  options.model->name = training.model;
  options.model->classes = training.classes;
  if (training.feed) options.model->mean = training.feed->mean;
  if (training.feed) options.model->stddev = training.feed->stddev;
  if (!options.records()) return training;
  training.gradient_norm = true;
  training.log = [log = std::move(training.log), decisions = options.decisions](const std::string& line) {
    if (log) log(line);
    decisions->push_back(line);
  };
  return training;
}

}  // namespace samples
