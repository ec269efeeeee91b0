// Measures the parts of training on this machine's Vulkan device. See README.md in this folder.
#include <halfstep/device.h>
#include <halfstep/error.h>
#include <halfstep/process.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/peaks.h"

namespace {

constexpr int exit_bad_input = 2;

struct Options {
  std::string device;
  std::filesystem::path json;
  int repeats = 20;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them");
  app.add_option("--json", options.json, "File to write the results to");
  app.add_option("--repeats", options.repeats, "How often each thing is timed")
      ->check(bench::count_up_to(100000))
      ->capture_default_str();
}

int fail(std::string message, int code = exit_bad_input) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "error: {}\n", message);
  return code;
}

int run(const std::vector<bench::Command>& commands, const Options& options) {
  if (!options.json.empty()) halfstep::check_writable(options.json);
  const bench::Bench bench(halfstep::Device::open(options.device), options.repeats);
  bench::Report report(bench.device().info(), bench::measure_peaks(bench));
  for (const bench::Command& command : commands) {
    if (command.app->parsed()) command.run(bench, report);
  }
  report.print();
  if (!options.json.empty()) report.write_json(options.json);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times kernels and whole training steps on a Vulkan device.");
  Options options;
  try {
    add_options(app, options);
    app.require_subcommand(1);
    app.fallthrough();
    const std::vector<bench::Command> commands{bench::add_peaks(app),    bench::add_gemm(app),   bench::add_conv(app),
                                               bench::add_memory(app),   bench::add_reduce(app), bench::add_update(app),
                                               bench::add_overhead(app), bench::add_step(app),   bench::add_tune(app)};
    app.parse(argc, argv);
    return run(commands, options);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{} (--help lists what there is)", error.what()));
  } catch (const halfstep::Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("expected enough memory on this machine, got none", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
