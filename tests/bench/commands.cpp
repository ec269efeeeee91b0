#include "bench/commands.h"

#include <utility>

#include "bench/peaks.h"

namespace bench {

Command timed(CLI::App* app, std::function<void(const Bench&, Report&)> measure) {
  return {app, [measure = std::move(measure)](const Bench& bench, const std::filesystem::path& json) {
            Report report(bench.device().info(), measure_peaks(bench));
            measure(bench, report);
            report.print();
            if (!json.empty()) report.write_json(json);
          }};
}

void add_dtype(CLI::App& app, std::string& dtype) {
  app.add_option("--dtype", dtype, "Type the tensors are stored in; sums are f32")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision, "What is stored and computed in which type")
      ->check(CLI::IsMember(halfstep::Precision::names()))
      ->capture_default_str();
}

halfstep::Precision precision_of(const std::string& name) {
  return halfstep::Precision::level(name);
}

}  // namespace bench
