// A network learns a picture: from a position to the colour there.
//
//   $ bin/image_fit --out fit.png --animation fit.apng
//     step    seconds   batch PSNR   picture PSNR
//       10        0.9         15.6           15.5
//   ...
//
// The positions are encoded by a hash grid (Mueller et al. 2022) or by frequencies (Mildenhall et al. 2020); two hidden
// layers follow. The sheet shows the picture as it was and as it is after 10, 100, 1,000 and more steps.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "models/layers.h"
#include "samples/common/say.h"
#include "samples/graphics/animation.h"
#include "samples/graphics/graphics.h"
#include "samples/graphics/landscape.h"
#include "samples/graphics/panels.h"
#include "samples/graphics/window.h"

using namespace halfstep;

namespace {

struct Options : samples::GridOptions {
  std::filesystem::path image;
  std::int64_t size = 512;
  std::string encoding = "hash";
  std::int64_t batch = 16384;
  std::filesystem::path animation;
  bool window = false;
};

/// The network: positions {n, 2} in the unit square to colours {n, 3}.
Tensor network(const Scope& scope, Tensor positions, const Options& options) {
  const Tensor x = options.encoding == "hash"
                       ? models::hash_grid(scope / "grid", positions, {.log2_hashmap_size = options.table})
                       : frequency_encoding(positions, 10);
  return fused_mlp(x, {models::dense_layer(scope / "hidden1", x.dim(-1), options.width, models::Before::relu),
                       models::dense_layer(scope / "hidden2", options.width, options.width, models::Before::relu),
                       models::dense_layer(scope / "colours", options.width, 3)});
}

/// The centre of each pixel, {height * width, 2}, from 0 to 1 along the longer side.
std::vector<float> centres_of(const Image& image) {
  const auto longest = static_cast<float>(std::max(image.height, image.width));
  std::vector<float> centres;
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      centres.push_back((static_cast<float>(column) + 0.5F) / longest);
      centres.push_back((static_cast<float>(row) + 0.5F) / longest);
    }
  }
  return centres;
}

/// Peak signal-to-noise ratio in dB, of colours from 0 to 1.
double psnr(double mean_square) {
  return -10 * std::log10(std::max(mean_square, 1e-12));
}

/// The picture as the network has it, with its PSNR.
struct View {
  Image image;
  double decibels = 0;
};

/// Shows what the trainer's network has learned.
class Viewer {
 public:
  Viewer(const Trainer& trainer, const Image& original, const std::vector<float>& centres, const Options& options)
      : original_(original), centres_(centres), predictor_(compile(trainer, options)) {}

  View view() {
    View view{{original_.height, original_.width, std::vector<std::uint8_t>(original_.pixels.size())}, 0};
    double squares = 0;
    std::vector<float> positions(static_cast<std::size_t>(2 * at_once));
    for (std::size_t first = 0; first < original_.pixels.size() / 3; first += at_once) {
      const std::size_t count = std::min<std::size_t>(at_once, original_.pixels.size() / 3 - first);
      std::copy_n(centres_.begin() + static_cast<std::ptrdiff_t>(2 * first), 2 * count, positions.begin());
      const std::vector<float> colours = predictor_.run({{"positions", std::span<const float>(positions)}});
      for (std::size_t i = 0; i < 3 * count; ++i) {
        view.image.pixels[3 * first + i] = samples::byte_of(colours[i]);
        const double error = std::clamp(colours[i], 0.0F, 1.0F) - original_.pixels[3 * first + i] / 255.0;
        squares += error * error;
      }
    }
    view.decibels = psnr(squares / static_cast<double>(original_.pixels.size()));
    return view;
  }

 private:
  static constexpr std::int64_t at_once = 65536;

  static Predictor compile(const Trainer& trainer, const Options& options) {
    Graph graph;
    return Predictor::compile(trainer, graph, network(graph.root(), graph.input("positions", {at_once, 2}), options));
  }

  const Image& original_;
  const std::vector<float>& centres_;
  Predictor predictor_;
};

void write_sheet(const std::filesystem::path& path, std::vector<samples::Panel> panels) {
  constexpr std::int64_t most_side = 640;
  const std::int64_t side = std::max(panels[0].image.height, panels[0].image.width);
  for (samples::Panel& panel : panels) panel.image = samples::reduced(panel.image, (side + most_side - 1) / most_side);
  samples::write_panels(path, panels, panels.size() <= 4 ? 2 : 3);
}

/// Whether a step is 1, 2, 5, 10, 20, 50, ...
bool is_round(std::int64_t step) {
  while (step % 10 == 0) step /= 10;
  return step == 1 || step == 2 || step == 5;
}

bool is_power_of_ten(std::int64_t step) {
  while (step % 10 == 0) step /= 10;
  return step == 1;
}

/// Shows the picture in a window as it is learned, in no more than about a fifth of the time.
class LiveView {
 public:
  LiveView(Viewer& viewer, const Image& original)
      : viewer_(viewer), window_("image_fit", original.width, original.height) {}

  /// To be called after each step; false once the user has closed the window.
  bool update(std::int64_t step) {
    if (!window_.is_open()) return false;
    const auto start = std::chrono::steady_clock::now();
    if (start < next_) return true;
    const View view = viewer_.view();
    window_.show(view.image, fmt::format("image_fit: {} steps, {:.1f} dB", step, view.decibels));
    const auto end = std::chrono::steady_clock::now();
    next_ = end + 4 * (end - start);
    return true;
  }

 private:
  Viewer& viewer_;
  samples::Window window_;
  std::chrono::steady_clock::time_point next_{};
};

/// Trains, and keeps what is to be shown.
class Fit {
 public:
  Fit(Trainer& trainer, Viewer& viewer, const Image& original, const Options& options)
      : trainer_(trainer), viewer_(viewer), options_(options) {
    if (options.window) live_.emplace(viewer, original);
  }

  void run() {
    samples::say("  step    seconds   batch PSNR   picture PSNR\n");
    while (step_ < options_.steps && !stopped()) {
      const auto start = std::chrono::steady_clock::now();
      trainer_.step();
      trainer_.finish();
      seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      step_++;
      decibels_.push_back(psnr(static_cast<double>(trainer_.report().loss)));
      if (live_) closed_ = !live_->update(step_);
      const bool last = step_ == options_.steps || stopped();
      if (last || is_round(step_)) show(last || (step_ > 1 && is_power_of_ten(step_)));
    }
  }

  bool has_results() const { return step_ > 0; }
  const std::vector<samples::Panel>& panels() const { return panels_; }
  const std::vector<Image>& frames() const { return frames_; }

  nlohmann::json report() const {
    return {{"steps", step_}, {"seconds", seconds_}, {"psnr", final_}, {"batch_psnr", decibels_}};
  }

 private:
  bool stopped() const { return closed_ || interrupted(); }

  void show(bool on_sheet) {
    const View view = viewer_.view();
    final_ = view.decibels;
    samples::say("{:6}  {:9.1f}  {:11.1f}  {:13.1f}\n", step_, seconds_, decibels_.back(), view.decibels);
    if (on_sheet) panels_.push_back({view.image, fmt::format("{} steps, {:.1f} dB", step_, view.decibels)});
    if (!options_.animation.empty()) frames_.push_back(view.image);
  }

  Trainer& trainer_;
  Viewer& viewer_;
  const Options& options_;
  std::optional<LiveView> live_;
  bool closed_ = false;  ///< the window, by its user
  std::int64_t step_ = 0;
  double seconds_ = 0;
  double final_ = 0;
  std::vector<double> decibels_;
  std::vector<samples::Panel> panels_;
  std::vector<Image> frames_;
};

Dataset pixels_of(const Image& image, const std::vector<float>& centres) {
  std::vector<float> colours(image.pixels.size());
  std::ranges::transform(image.pixels, colours.begin(), [](std::uint8_t level) { return level / 255.0F; });
  return Dataset::of("pixels",
                     {Field::borrow<float>("positions", {2}, centres), Field::own("colours", {3}, std::move(colours))});
}

void train(const Options& options, const Image& original, const Device& device) {
  const std::vector<float> centres = centres_of(original);
  const Dataset pixels = pixels_of(original, centres);
  const std::int64_t batch = std::min(options.batch, pixels.count);

  Graph graph;
  const Tensor positions = graph.input("positions", {batch, 2});
  const Tensor colours = graph.input("colours", {batch, 3});
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = mse_loss(network(graph.root(), positions, options), colours),
                                      .optimizer = samples::grid_adam(options, options.steps, 0.05F),
                                      .precision = Precision::level(options.precision),
                                      .seed = options.seed,
                                      .feed = Feed{.inputs = {{.input = positions}, {.input = colours}}},
                                      .training_set = &pixels});
  samples::say("{} x {} pixels, {} parameters on {}\n", original.width, original.height, graph.parameter_count(),
               device.info().name);
  Viewer viewer(trainer, original, centres, options);
  Fit fit(trainer, viewer, original, options);
  fit.run();
  if (!fit.has_results()) return;  // interrupted
  std::vector<samples::Panel> panels{{original, "the picture"}};
  panels.insert(panels.end(), fit.panels().begin(), fit.panels().end());
  write_sheet(options.out, panels);
  if (!options.animation.empty()) samples::write_animation(options.animation, fit.frames(), 0.4);
  nlohmann::json results = fit.report();
  results["encoding"] = options.encoding;
  samples::write_results(options, std::move(results), device);
}

int run(const Options& options) {
  std::vector<samples::NamedFile> inputs;
  if (!options.image.empty()) inputs.push_back({"--image", options.image});
  return samples::run_graphics(options, {{"--animation", options.animation}}, inputs, [&](const Device& device) {
    const bool drawn = options.image.empty();
    train(options, drawn ? samples::draw_landscape(options.size) : read_image(options.image), device);
  });
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--image", options.image, "PNG or JPEG file to learn; if not given, a picture that is drawn");
  app.add_option("--size", options.size, "Height and width of the picture that is drawn")
      ->transform(samples::whole_number(16, 4096))
      ->capture_default_str();
  samples::add_grid_options(app, options);
  app.add_option("--encoding", options.encoding, "Of positions")
      ->check(CLI::IsMember({"hash", "frequency"}))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch, "Pixels of a step")
      ->transform(samples::whole_number(1, 1 << 22))
      ->capture_default_str();
  samples::add_graphics_options(app, options, "a twentieth", "the order of pixels");
  app.add_option("--animation", options.animation, "Animated PNG file of the picture as it is learned")
      ->group(samples::files_group);
  if (samples::has_windows()) {
    app.add_flag("--window", options.window, "Shows the picture in a window as it is learned; closing it ends the run")
        ->group(samples::running_group);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small network to be a picture: colours from positions.");
  Options options;
  options.steps = 1000;
  options.width = 64;
  options.out = "image_fit.png";
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
