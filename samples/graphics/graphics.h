#pragma once

#include <halfstep/halfstep.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "samples/common/command_line.h"

namespace samples {

/// The flags that programs which learn something to be seen have in common.
struct GraphicsOptions {
  float rate = 0.01F;
  std::string precision = "mixed";
  std::uint64_t seed = 42;
  std::string device;
  std::filesystem::path out;
  std::filesystem::path json;
};

/// Adds them. `rate_falls_to` and `seeds` end the texts of --learning-rate and --seed: "a twentieth", "the paths".
void add_graphics_options(CLI::App& app, GraphicsOptions& options, const std::string& rate_falls_to,
                          const std::string& seeds);

/// The flags of those that train a small network on a hash grid.
struct GridOptions : GraphicsOptions {
  std::int64_t steps = 0;
  std::int64_t table = 15;
  std::int64_t width = 0;
};

/// Adds --steps, --table and --width.
void add_grid_options(CLI::App& app, GridOptions& options);

/// Checks the files, opens the device and has `work` done, which Ctrl-C is to end. Returns the program's exit code.
int run_graphics(const GraphicsOptions& options, std::vector<NamedFile> other_outputs,
                 const std::vector<NamedFile>& inputs, const std::function<void(const halfstep::Device&)>& work);

/// Adam as hash grids are trained (Mueller et al. 2022): the rate falls along a cosine to `part` of itself.
halfstep::Adam grid_adam(const GraphicsOptions& options, std::int64_t steps, float part);

/// Writes what a run ended with to the file of --json, if one is named, with the device and the precision.
void write_results(const GraphicsOptions& options, nlohmann::json results, const halfstep::Device& device);

/// A part of a colour, from 0 to 1, as a byte. NaN is black.
std::uint8_t byte_of(double level);

}  // namespace samples
