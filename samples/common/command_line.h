#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "samples/common/data.h"
#include "samples/watch/options.h"

/// The command line that all samples share.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace samples {

/// How often to save within an epoch: after this many steps or seconds. Both 0: not at all.
struct SaveInterval {
  std::int64_t steps = 0;
  double seconds = 0;
};

/// The flags that every training sample takes.
struct CommonOptions {
  const DataSource* source = &fashion_mnist;
  std::filesystem::path data;         ///< folder of the data set
  std::optional<std::int64_t> limit;  ///< samples used of each split
  std::string device;                 ///< index or part of a name; empty: the best
  std::uint64_t seed = 42;
  bool seed_given = false;       ///< on the command line
  std::filesystem::path save;    ///< checkpoint written after every epoch and when stopped; empty: none
  SaveInterval save_every;       ///< also within epochs
  std::filesystem::path resume;  ///< checkpoint to continue from; empty: none
  /// Names of the files that the folder of `save` gets with the checkpoint, and that of `resume` has.
  std::vector<std::string> beside;
  std::string program;         ///< its name
  std::filesystem::path json;  ///< report to write; empty: none
  bool quiet = false;          ///< print each epoch's result only
  bool reproducible = false;   ///< the same weights on every device; see Precision::reproducible
  WatchOptions watch;          ///< what else a run writes about itself
  /// Every flag that affects training, given or not: from its name, "--batch-size", to its value as text; empty: none.
  /// Not those that a given one excludes: of --resume, for example, what the checkpoint's folder has.
  std::map<std::string, std::string> flags;
};

/// The groups of --help for flags that do not affect training: files, and how a program runs. CommonOptions::flags does
/// not contain them.
inline constexpr const char* files_group = "Files";
inline constexpr const char* running_group = "Running";

/// Adds --data, --limit, --device and --seed, for a program that reads `source`.
void add_data_options(CLI::App& app, CommonOptions& options, const DataSource& source = fashion_mnist);
/// Adds all of the flags, for a program that trains on `source`.
void add_common_options(CLI::App& app, CommonOptions& options, const DataSource& source = fashion_mnist);

/// For CLI::Option::transform: an integer from `low` to `high`, in decimal digits, with redundant digits removed.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
/// A check for CLI11: a finite number above `low` and at most `high`.
CLI::Validator number_above(double low, double high);

/// Exit codes.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< of the machine: a full disk, out of memory, a lost device, no driver
inline constexpr int exit_bad_input = 2;  ///< invalid flags or files
inline constexpr int exit_signal = 128;   ///< plus the signal's number, as in shells: 130 for Ctrl-C

/// Throws Error at the start of a run if an output file could not be written at its end, if two outputs are the same
/// file, however it is spelt, or if an output is also an input.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs = {});

/// Makes the folder that a flag names, unless it exists. Throws Error if it cannot be made.
void make_folder(const std::string& flag, const std::filesystem::path& folder);

/// Parses the command line, then runs `body`. A signal ends the program immediately (see
/// halfstep::clean_up_on_interrupt) until `body` watches for it. A failure prints one line on standard error and
/// returns exit_bad_input or exit_failed. So does a flag with an empty value, and output that could not be written.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace samples
