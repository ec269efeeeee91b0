#include "samples/common/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

namespace samples {

namespace {

int fail(std::string message, int code = exit_bad_input) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "error: {}\n", message);
  return code;
}

std::string parse_error(const CLI::ParseError& error) {
  return fmt::format("{} (--help lists what there is)", error.what());
}

}  // namespace

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const auto check = [low, high](std::string& text) -> std::string {
    std::int64_t value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return {};
    return fmt::format("expected a whole number from {} to {}, got {}", low, high, text);
  };
  return {check, fmt::format("[{} to {}]", low, high), "whole_number"};
}

CLI::Validator number_above(double low, double high) {
  const auto check = [low, high](std::string& text) -> std::string {
    double value = 0;
    // Written so that a NaN fails too.
    if (CLI::detail::lexical_cast(text, value) && value > low && value <= high) return {};
    return fmt::format("expected a number above {} and up to {}, got {}", low, high, text);
  };
  return {check, fmt::format("({} to {}]", low, high), "number_above"};
}

void add_common_options(CLI::App& app, CommonOptions& options, const DataSource& source) {
  options.source = &source;
  options.data = source.folder;
  app.add_option("--data", options.data, source.help)->capture_default_str();
  app.add_option("--limit", options.limit, "Use only this many samples to train on, and to test on")
      ->check(whole_number(1, std::int64_t{1} << 31));
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them");
  app.add_option("--seed", options.seed, "Seed of the weights, the order of samples and the rounding")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  app.add_option("--save", options.save, "Checkpoint to write after every epoch and when stopped by Ctrl-C");
  app.add_option("--resume", options.resume, "Checkpoint to go on from");
  app.add_option("--json", options.json, "File to write a report to");
  app.add_flag("--quiet", options.quiet, "Print each epoch's result only");
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
    halfstep::watch_interrupts();
    return body();
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(parse_error(error));
  } catch (const halfstep::Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("expected enough memory on this machine, got none", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}

}  // namespace samples
