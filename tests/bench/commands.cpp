#include "bench/commands.h"

#include <utility>

#include "bench/peaks.h"

namespace bench {

using namespace halfstep;

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

void add_precision(CLI::App& app, PrecisionFlags& flags) {
  app.add_option("--precision", flags.name, "What is stored and computed in which type")
      ->check(CLI::IsMember(Precision::names()))
      ->capture_default_str();
  app.add_flag("--use-float16-partials", flags.float16_partials, "Keep the sums of products in f16");
}

Precision precision_of(const PrecisionFlags& flags) {
  Precision precision = Precision::level(flags.name);
  if (flags.float16_partials) precision.partials = {DType::f16, DType::f16};
  return precision;
}

}  // namespace bench
