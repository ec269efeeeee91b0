// An application that owns its Vulkan instance, device and queue. It renders off-screen, and between its frames a
// network learns what it renders, for at most a budget of the device's time in each frame:
//
//   $ bin/embed_in_app --frames 600
//     training   median      90%      99%   (ms of a frame)
//   ...
//
// Everything lies in one buffer of the application's (own_device/vulkan.h). Its shader writes positions and colours
// there, which steps read; the network's colour of each pixel goes there too, which the next shader shows. Nothing is
// copied, and nothing passes through the host but finished pictures.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <app_sample.spirv.h>
#include <app_show.spirv.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "models/layers.h"
#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/graphics/panels.h"
#include "samples/own_device/vulkan.h"

using namespace halfstep;
using samples::own_device::Buffer;
using samples::own_device::Commands;
using samples::own_device::Kernel;
using samples::own_device::Machine;
using samples::own_device::Push;

namespace {

struct Options {
  std::int64_t frames = 600;
  double budget = 4;
  std::int64_t width = 256;
  std::int64_t batch = 1024;
  float rate = 0.01F;
  std::string device;
  std::filesystem::path out = "embed_in_app.png";
  std::filesystem::path json;
};

/// Where everything lies in the application's buffer, in floats.
struct Places {
  explicit Places(const Options& options)
      : width(static_cast<std::uint32_t>(options.width)),
        height(width * 9 / 16),
        pixels(width * height),
        batch(static_cast<std::uint32_t>(options.batch)) {}

  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t pixels;
  std::uint32_t batch;
  std::uint32_t positions = 0;                     ///< {batch, 2}
  std::uint32_t colours = 2 * batch;               ///< {batch, 3}
  std::uint32_t centres = colours + 3 * batch;     ///< {pixels, 2}
  std::uint32_t estimates = centres + 2 * pixels;  ///< {pixels, 3}
  std::uint32_t numbers = estimates + 3 * pixels;
};

/// The network: positions {n, 2} to colours {n, 3}.
Tensor network(const Scope& scope, Tensor positions) {
  Tensor x = frequency_encoding(positions, 6);
  for (const char* layer : {"hidden1", "hidden2"}) {
    x = relu(models::dense(scope / layer, x, 32, models::Before::relu));
  }
  return models::dense(scope / "colours", x, 3);
}

Trainer make_trainer(const Device& device, const Buffer& numbers, const Places& at, const Options& options) {
  Graph graph;
  const Tensor positions = graph.input("positions", {at.batch, 2});
  const Tensor colours = graph.input("colours", {at.batch, 3});
  return Trainer::compile(device, graph,
                          {.loss = mse_loss(network(graph.root(), positions), colours),
                           .optimizer = Adam{.rate = options.rate, .beta2 = 0.99F},
                           .shared_inputs = {{"positions", numbers.tensor(at.positions, 2 * at.batch)},
                                             {"colours", numbers.tensor(at.colours, 3 * at.batch)}}});
}

/// The colours of all pixels, with the weights that the trainer has when it is run.
Predictor make_predictor(const Trainer& trainer, const Buffer& numbers, const Places& at) {
  Graph graph;
  const Tensor centres = graph.input("positions", {at.pixels, 2});
  return Predictor::compile(trainer, graph, network(graph.root(), centres),
                            {.inputs = {{"positions", numbers.tensor(at.centres, 2 * at.pixels)}},
                             .output = numbers.tensor(at.estimates, 3 * at.pixels)});
}

/// Milliseconds of frames.
struct Times {
  std::vector<double> all;

  double percentile(std::size_t percent) const {
    std::vector<double> sorted = all;
    std::ranges::sort(sorted);
    return sorted.empty() ? 0 : sorted[std::min(sorted.size() * percent / 100, sorted.size() - 1)];
  }
  nlohmann::json json() const {
    return {
        {"frames", all.size()}, {"median_ms", percentile(50)}, {"p90_ms", percentile(90)}, {"p99_ms", percentile(99)}};
  }
};

double psnr(const Image& image, const Image& original) {
  double squares = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    squares += std::pow((image.pixels[i] - original.pixels[i]) / 255.0, 2);
  }
  return -10 * std::log10(std::max(squares / static_cast<double>(image.pixels.size()), 1e-12));
}

class Application {
 public:
  Application(const Machine& machine, const Options& options)
      : options_(options),
        at_(options),
        numbers_(machine, 4 * std::uint64_t{at_.numbers}, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
        picture_(machine, 4 * std::uint64_t{at_.pixels},
                 VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT),
        sample_(machine, halfstep_kernels::app_sample().at("f32"), numbers_, picture_),
        show_(machine, halfstep_kernels::app_show().at("f32"), numbers_, picture_),
        sampling_(machine),
        frame_(machine),
        device_(Device::adopt(machine.handles())),
        trainer_(make_trainer(device_, numbers_, at_, options)),
        predictor_(make_predictor(trainer_, numbers_, at_)) {
    write_samples(0);
    sampling_.wait();
    original_ = render(at_.width);
    warm_up();
  }

  /// Renders frames, with training between them or without; fewer if the user stops them.
  Times run(bool trains) {
    Times times;
    auto last = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < options_.frames && !interrupted(); ++i) {
      if (trains && train()) ++steps_;
      const double phase = static_cast<double>(i) / 60;
      draw(static_cast<std::uint32_t>((0.5 + 0.4 * std::sin(phase)) * at_.width));
      const auto now = std::chrono::steady_clock::now();
      times.all.push_back(std::chrono::duration<double, std::milli>(now - last).count());
      const bool shown = trains && (i + 1 == options_.frames || 10 * (i + 1) == options_.frames ||
                                    3 * (i + 1) == options_.frames || interrupted());
      if (shown) keep_panel();
      last = std::chrono::steady_clock::now();
    }
    return times;
  }

  const std::vector<samples::Panel>& panels() const { return panels_; }
  const Image& original() const { return original_; }
  const Device& device() const { return device_; }
  double decibels() const { return decibels_; }
  /// That ended within frames.
  std::int64_t steps() const { return steps_; }

 private:
  Push push(std::uint32_t count, std::uint32_t choice) const { return {count, at_.width, at_.height, choice, 0, 0}; }

  /// Draws new samples, or with a seed of 0 writes the centres of all pixels.
  void write_samples(std::uint32_t seed) {
    Push push = this->push(seed == 0 ? at_.pixels : at_.batch, seed);
    push.positions = seed == 0 ? at_.centres : at_.positions;
    push.colours = seed == 0 ? at_.estimates : at_.colours;
    sample_.dispatch(sampling_.begin(), push);
    sampling_.end();
    sampling_.submit();
  }

  /// The first steps take longer: they are cut by predicted times, recorded anew when these were measured, and kernels
  /// may be compiled when they first run. So they are not within a frame.
  void warm_up() {
    for (int steps = 0; steps < 6;) {
      if (!train()) continue;
      trainer_.finish();
      ++steps;
    }
  }

  /// Submits what fits the budget, and returns whether a step ended. That one is followed by new samples, for the next.
  bool train() {
    if (ended_) {
      if (seed_ > 1) sampling_.wait();
      write_samples(seed_++);
    }
    ended_ = trainer_.run_for(std::chrono::nanoseconds(std::llround(1e6 * options_.budget)));
    return ended_;
  }

  /// The application's frame: the network's colours, then its own shader, in one command buffer. Waits for it.
  void draw(std::uint32_t divider) {
    VkCommandBuffer commands = frame_.begin();
    predictor_.record(commands);
    Push push = this->push(at_.pixels, divider);
    push.colours = at_.estimates;
    show_.dispatch(commands, push);
    auto barrier = samples::own_device::of_type<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    frame_.end();
    frame_.submit();
    frame_.wait();
  }

  Image render(std::uint32_t divider) {
    draw(divider);
    Image image{at_.height, at_.width, std::vector<std::uint8_t>(3 * std::size_t{at_.pixels})};
    const auto* rgba = static_cast<const std::uint8_t*>(picture_.mapped());
    for (std::size_t i = 0; i < at_.pixels; ++i) std::memcpy(&image.pixels[3 * i], rgba + 4 * i, 3);
    return image;
  }

  void keep_panel() {
    trainer_.finish();
    ended_ = true;
    const Image image = render(0);
    decibels_ = psnr(image, original_);
    const std::uint64_t steps = trainer_.report().step;
    panels_.push_back({image, fmt::format("{} steps, {:.1f} dB", steps, decibels_)});
  }

  const Options& options_;
  Places at_;
  Buffer numbers_;
  Buffer picture_;
  Kernel sample_;
  Kernel show_;
  Commands sampling_;
  Commands frame_;
  Device device_;
  Trainer trainer_;
  Predictor predictor_;
  Image original_;
  std::vector<samples::Panel> panels_;
  double decibels_ = 0;
  std::uint32_t seed_ = 1;
  bool ended_ = true;       ///< the step that run_for() has begun
  std::int64_t steps_ = 0;  ///< within frames
};

void write_json(const Options& options, Application& application, const Times& off, const Times& on) {
  const nlohmann::json report{{"device", application.device().info().name},
                              {"budget_ms", options.budget},
                              {"steps", application.steps()},
                              {"psnr", application.decibels()},
                              {"without_training", off.json()},
                              {"with_training", on.json()}};
  // A device's name comes from its driver and may not be UTF-8.
  const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const Bytes parts[] = {std::as_bytes(std::span(text))};
  write_atomically(options.json, parts);
}

int run(const Options& options) {
  samples::check_outputs({{"--out", options.out}, {"--json", options.json}});
  const Machine machine(options.device);
  Application application(machine, options);
  watch_interrupts();
  samples::say("frames of {} x {} pixels on {}\n", options.width, options.width * 9 / 16,
               application.device().info().name);
  samples::say("  training   median      90%      99%   (ms of a frame)\n");
  const auto print = [](const char* what, const Times& times) {
    if (times.all.empty()) return;  // the user has stopped it before
    samples::say("{:>10} {:8.2f} {:8.2f} {:8.2f}\n", what, times.percentile(50), times.percentile(90),
                 times.percentile(99));
  };
  const Times off = application.run(false);
  print("off", off);
  const Times on = application.run(true);
  print("on", on);
  if (!on.all.empty()) {
    samples::say("{} steps within {:g} ms a frame, picture PSNR {:.1f} dB\n", application.steps(), options.budget,
                 application.decibels());
  }
  std::vector<samples::Panel> panels{{application.original(), "the scene"}};
  panels.insert(panels.end(), application.panels().begin(), application.panels().end());
  samples::write_panels(options.out, panels, 2);
  if (!options.json.empty()) write_json(options, application, off, on);
  return interrupted() ? samples::exit_signal + interrupt_signal() : samples::exit_done;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--frames", options.frames, "Frames without training, and then with it")
      ->transform(samples::whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--budget", options.budget, "Milliseconds of the device's time for training in each frame")
      ->check(samples::number_above(0, 10'000))
      ->capture_default_str();
  app.add_option("--width", options.width, "Of a frame, in pixels")
      ->transform(samples::whole_number(16, 3840))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch, "Samples of a step")
      ->transform(samples::whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--learning-rate", options.rate, "Adam's")->check(samples::number_above(0, 10))->capture_default_str();
  app.add_option("--out", options.out, "PNG file for the scene, and for the network's at some frames")
      ->capture_default_str()
      ->group(samples::files_group);
  app.add_option("--json", options.json, "File for the times")->group(samples::files_group);
  app.add_option("--device", options.device, "Part of the name of the device; the first one without it")
      ->group(samples::running_group);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("An application with its own Vulkan device: a network learns within its frames, on its buffers.");
  Options options;
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
