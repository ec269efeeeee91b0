#include "samples/common/command_line.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <new>

#include "samples/common/ranks.h"

namespace samples {

namespace {

int fail(std::string message, int code = exit_bad_input) {
  std::ranges::replace(message, '\n', ' ');
  abort_ranks(message, code);
  fmt::print(stderr, "error: {}\n", message);
  return code;
}

std::string parse_error(std::string_view what) {
  return fmt::format("{} (--help lists what there is)", what);
}

/// What CLI::ExtrasError says, which names them backwards.
std::string extras_error(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining(true);
  return fmt::format("The following argument{} not expected: {}", left.size() == 1 ? " was" : "s were",
                     fmt::join(left, " "));
}

/// Parses all of `text` as a decimal integer; no value if it is not one or too large.
std::optional<std::int64_t> decimal(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// Parses "500" (steps) or "30s".
std::optional<SaveInterval> save_interval(std::string text) {
  constexpr double most_seconds = 1e7;
  if (text.ends_with('s')) {
    text.pop_back();
    SaveInterval interval;
    const bool number = CLI::detail::lexical_cast(text, interval.seconds);
    if (number && interval.seconds > 0 && interval.seconds <= most_seconds) return interval;
    return {};
  }
  const auto steps = decimal(text);
  if (!steps || *steps < 1) return {};
  return SaveInterval{.steps = *steps};
}

std::string name_of(const CLI::Option& option) {
  return (option.get_lnames().empty() ? "" : "--") + option.get_single_name();
}

/// Whether a flag does not count, as one that is given excludes it.
bool is_excluded(const CLI::Option& option) {
  return std::ranges::any_of(option.get_excludes(), [](const CLI::Option* other) { return other->count() > 0; });
}

/// The flags that affect training, with their values. The seed is not among them: the trainer stores it.
std::map<std::string, std::string> flags_of(const CLI::App& app) {
  std::map<std::string, std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    const bool shapes = option->get_group() == "Options" && option != app.get_help_ptr();
    if (!shapes || is_excluded(*option) || name_of(*option) == "--seed") continue;
    const std::vector<std::string>& given = option->results();
    flags[name_of(*option)] =
        given.empty() ? option->get_default_str() : fmt::format("{}", fmt::join(given.begin(), given.end(), " "));
  }
  return flags;
}

void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto empty = [](const std::string& value) { return value.empty(); };
    if (std::ranges::any_of(option->results(), empty)) {
      halfstep::fail(name_of(*option), "expected a value, got an empty text", "leave the flag out where none is meant");
    }
  }
}

/// Returns `code`, unless writing the output failed.
int with_output_written(int code) {
  std::cout.flush();
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || code != exit_done) return code;
  return fail(fmt::format("cannot write standard output: {}", errno != 0 ? std::strerror(errno) : "some of it is lost"),
              exit_failed);
}

}  // namespace

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const auto check = [low, high](std::string& text) -> std::string {
    const std::optional<std::int64_t> value = decimal(text);
    if (value && *value >= low && *value <= high) {
      text = std::to_string(*value);  // CLI11 would read 010 as octal
      return {};
    }
    return fmt::format("expected a whole number from {} to {}, got {}", low, high, text);
  };
  return {check, fmt::format("[{} to {}]", low, high), "whole_number"};
}

CLI::Validator number_above(double low, double high) {
  const auto check = [low, high](std::string& text) -> std::string {
    double value = 0;
    // Written so that NaN fails too.
    if (CLI::detail::lexical_cast(text, value) && value > low && value <= high) return {};
    return fmt::format("expected a number above {} and up to {}, got {}", low, high, text);
  };
  return {check, fmt::format("({} to {}]", low, high), "number_above"};
}

void add_data_options(CLI::App& app, CommonOptions& options, const DataSource& source) {
  options.source = &source;
  options.data = source.folder;
  app.add_option("--data", options.data, source.help)->capture_default_str()->group(files_group);
  app.add_option("--limit", options.limit, "Use only this many samples to train on, and to test on")
      ->transform(whole_number(1, std::int64_t{1} << 31));
  app.add_option("--device", options.device, "Index or part of the name of the device; bin/devices lists them")
      ->group(running_group);
  CLI::Option* const seed =
      app.add_option("--seed", options.seed, "Seed of the weights, the order of samples and the rounding")
          ->transform(whole_number(0, std::numeric_limits<std::int64_t>::max()))
          ->capture_default_str();
  app.final_callback([&app, &options, seed] {
    options.flags = flags_of(app);
    options.program = std::filesystem::path(app.get_name()).filename().string();
    options.seed_given = seed->count() > 0;
  });
}

void add_common_options(CLI::App& app, CommonOptions& options, const DataSource& source) {
  add_data_options(app, options, source);
  CLI::Option* const save =
      app.add_option("--save", options.save, "Checkpoint to write after every epoch and when stopped by a signal")
          ->group(files_group);
  const auto set_interval = [&options](const std::string& text) { options.save_every = *save_interval(text); };
  const auto check_interval = [](const std::string& text) {
    return save_interval(text) ? std::string()
                               : fmt::format("expected steps, as 500, or seconds, as 30s, got {}", text);
  };
  app.add_option_function<std::string>("--save-every", set_interval,
                                       "Also save after every so many steps (500) or seconds (30s), while training "
                                       "goes on; skipped while the save before is still being written")
      ->check(check_interval)
      ->needs(save)
      ->group(files_group);
  app.add_option("--resume", options.resume, "Checkpoint to go on from")->group(files_group);
  app.add_option("--json", options.json, "File to write a report to")->group(files_group);
  add_watch_options(app, options.watch, source.read != nullptr);
  app.add_flag("--reproducible", options.reproducible,
               "Train so that the weights are the same, bit for bit, on every device and driver: takes longer");
  app.add_flag("--quiet", options.quiet, "Print each epoch's result only")->group(running_group);
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  std::map<std::filesystem::path, std::string> taken;
  for (const auto& [flag, path] : inputs) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(path, error);
    if (!error) taken.emplace(file, flag);
  }
  for (const auto& [flag, path] : outputs) {
    if (path.empty()) continue;
    const auto [other, alone] = taken.emplace(halfstep::written_file(path), flag);
    if (!alone) {
      halfstep::fail(flag, fmt::format("expected another file than that of {}, got {}", other->second, path.string()));
    }
    halfstep::check_writable(path);
  }
}

void make_folder(const std::string& flag, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (std::filesystem::is_directory(folder)) return;
  halfstep::fail(flag, fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
}

/// Whether other arguments or files would help.
static bool is_bad_input(halfstep::ErrorCode code) {
  return code == halfstep::ErrorCode::bad_argument || code == halfstep::ErrorCode::bad_file ||
         code == halfstep::ErrorCode::unsupported;
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  halfstep::open_standard_streams();
  try {
    join_ranks();
    app.parse(argc, argv);
    refuse_empty_values(app);
    check_ranks();
    halfstep::clean_up_on_interrupt();
    const int code = body();
    leave_ranks();
    return with_output_written(code);
  } catch (const CLI::Success& help) {
    const int code = is_first_rank() ? app.exit(help) : exit_done;
    leave_ranks();
    return with_output_written(code);
  } catch (const CLI::ExtrasError&) {
    return fail(parse_error(extras_error(app)));
  } catch (const CLI::ParseError& error) {
    return fail(parse_error(error.what()));
  } catch (const halfstep::Error& error) {
    return fail(error.what(), is_bad_input(error.code()) ? exit_bad_input : exit_failed);
  } catch (const std::bad_alloc&) {
    return fail("expected enough memory on this machine, got none", exit_failed);
  } catch (const std::exception& error) {
    return fail(error.what(), exit_failed);
  }
}

}  // namespace samples
