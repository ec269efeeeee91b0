#include "samples/graphics/graphics.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace samples {

using namespace halfstep;

void add_graphics_options(CLI::App& app, GraphicsOptions& options, const std::string& rate_falls_to,
                          const std::string& seeds) {
  app.add_option("--learning-rate", options.rate, "Adam's, at first; it ends at " + rate_falls_to)
      ->check(number_above(0, 10))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "What is computed in 16 bits: see Precision")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the initial weights and " + seeds)->capture_default_str();
  app.add_option("--out", options.out, "PNG file for the pictures")->capture_default_str()->group(files_group);
  app.add_option("--json", options.json, "File for the results")->group(files_group);
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them")
      ->group(running_group);
}

void add_grid_options(CLI::App& app, GridOptions& options) {
  app.add_option("--steps", options.steps, "Steps to train")
      ->transform(whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--table", options.table, "Of the hash grid: log2 of the entries of a level")
      ->transform(whole_number(4, 24))
      ->capture_default_str();
  app.add_option("--width", options.width, "Of the two hidden layers")
      ->transform(whole_number(1, 1024))
      ->capture_default_str();
}

int run_graphics(const GraphicsOptions& options, std::vector<NamedFile> other_outputs,
                 const std::vector<NamedFile>& inputs, const std::function<void(const Device&)>& work) {
  other_outputs.push_back({"--out", options.out});
  other_outputs.push_back({"--json", options.json});
  check_outputs(other_outputs, inputs);
  const Device device = Device::open(options.device);
  watch_interrupts();
  work(device);
  return interrupted() ? exit_signal + interrupt_signal() : exit_done;
}

Adam grid_adam(const GraphicsOptions& options, std::int64_t steps, float part) {
  return {.rate = Schedule::cosine(options.rate, 0, steps, options.rate * part), .beta2 = 0.99F, .epsilon = 1e-15F};
}

void write_results(const GraphicsOptions& options, nlohmann::json results, const Device& device) {
  if (options.json.empty()) return;
  results["device"] = device.info().name;
  results["precision"] = options.precision;
  // A device's name comes from its driver and may not be UTF-8.
  const std::string text = results.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const Bytes parts[] = {std::as_bytes(std::span(text))};
  write_atomically(options.json, parts);
}

std::uint8_t byte_of(double level) {
  const double scaled = 255 * std::clamp(level, 0.0, 1.0);
  return static_cast<std::uint8_t>(scaled >= 0 ? std::lround(scaled) : 0);
}

}  // namespace samples
