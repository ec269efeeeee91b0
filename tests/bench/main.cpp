// Measures the parts of training on this machine's Vulkan device. See README.md in this folder.
#include <halfstep/device.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "samples/common/command_line.h"

namespace {

struct Options {
  std::string device;
  std::filesystem::path json;
  int repeats = 20;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them");
  app.add_option("--json", options.json, "File to write the results to");
  app.add_option("--repeats", options.repeats, "How often each thing is timed")
      ->transform(samples::whole_number(1, 100000))
      ->capture_default_str();
}

int run(const std::vector<bench::Command>& commands, const Options& options) {
  samples::check_outputs({{"--json", options.json}});
  const bench::Bench bench(halfstep::Device::open(options.device), options.repeats);
  for (const bench::Command& command : commands) {
    if (command.app->parsed()) command.run(bench, options.json);
  }
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times kernels and whole training steps on a Vulkan device, or shows what its driver makes of them.");
  Options options;
  add_options(app, options);
  app.require_subcommand(1);
  app.fallthrough();
  const std::vector<bench::Command> commands{
      bench::add_peaks(app),    bench::add_gemm(app),        bench::add_conv(app),   bench::add_attention(app),
      bench::add_mlp(app),      bench::add_memory(app),      bench::add_reduce(app), bench::add_update(app),
      bench::add_overhead(app), bench::add_step(app),        bench::add_tune(app),   bench::add_shaders(app),
      bench::add_exchange(app), bench::add_reproducible(app)};
  return samples::run_program(app, argc, argv, [&] { return run(commands, options); });
}
