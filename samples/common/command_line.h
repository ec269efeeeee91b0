#pragma once

#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "samples/common/data.h"

/// What every sample's command line has in common.
namespace samples {

/// The flags that every training sample takes.
struct CommonOptions {
  const DataSource* source = &fashion_mnist;
  std::filesystem::path data;         ///< folder of the data set
  std::optional<std::int64_t> limit;  ///< samples used of each half
  std::string device;                 ///< index or part of a name; empty: the best
  std::uint64_t seed = 42;
  std::filesystem::path save;    ///< checkpoint written after every epoch and when stopped; empty: none
  std::filesystem::path resume;  ///< checkpoint to go on from; empty: none
  std::filesystem::path json;    ///< report to write; empty: none
  bool quiet = false;            ///< print each epoch's result only
};

/// Adds the flags, for a program that trains on `source`.
void add_common_options(CLI::App& app, CommonOptions& options, const DataSource& source = fashion_mnist);

/// A check for CLI11: a whole number from `low` to `high`.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
/// A check for CLI11: a finite number from `low` to `high`, `low` itself left out.
CLI::Validator number_above(double low, double high);

/// Exit codes, as scripts see them.
inline constexpr int exit_done = 0;
inline constexpr int exit_bad_input = 2;
inline constexpr int exit_interrupted = 130;  ///< as a shell has it for a program ended by Ctrl-C

/// Parses the command line, then runs `body` with interrupts watched (see halfstep::watch_interrupts). Whatever is
/// wrong with the input becomes one line on standard error and exit_bad_input.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace samples
