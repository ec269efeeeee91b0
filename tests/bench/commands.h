#pragma once

#include <halfstep/precision.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <string>

#include "bench/measure.h"
#include "bench/report.h"

namespace bench {

/// A subcommand: its flags, and the function to run after they are parsed. It prints its results, and writes them to
/// the JSON file if one is named.
struct Command {
  CLI::App* app;
  std::function<void(const Bench&, const std::filesystem::path& json)> run;
};

/// A subcommand that adds times to a report, which compares them with the peaks of the device.
Command timed(CLI::App* app, std::function<void(const Bench&, Report&)> measure);

// Each is defined in the file of the same name.
Command add_peaks(CLI::App& app);
Command add_gemm(CLI::App& app);
Command add_conv(CLI::App& app);
Command add_attention(CLI::App& app);
Command add_mlp(CLI::App& app);
Command add_memory(CLI::App& app);
Command add_reduce(CLI::App& app);
Command add_update(CLI::App& app);
Command add_overhead(CLI::App& app);
Command add_step(CLI::App& app);
Command add_tune(CLI::App& app);
Command add_shaders(CLI::App& app);
Command add_exchange(CLI::App& app);
Command add_reproducible(CLI::App& app);

/// The flag --dtype.
void add_dtype(CLI::App& app, std::string& dtype);
/// What the flags --precision and --use-float16-partials say.
struct PrecisionFlags {
  std::string name = "mixed";
  bool float16_partials = false;
};
void add_precision(CLI::App& app, PrecisionFlags& flags);
halfstep::Precision precision_of(const PrecisionFlags& flags);

}  // namespace bench
