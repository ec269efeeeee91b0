#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>

#include "bench/commands.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct ReduceOptions {
  std::int64_t rows = 65536;
  std::int64_t columns = 64;
  std::string dtype = "f32";
};

void run(const ReduceOptions& options, const Bench& bench, Report& report) {
  Graph graph;
  const Tensor x = graph.input("x", {options.rows, options.columns}, dtype_of(options.dtype));
  const auto add = [&](const char* over, Tensor result) {
    report.add(fmt::format("sum {} {} {}", options.dtype, to_string(x.shape()), over), bench.run(graph, result));
  };
  add("over all", sum(x));
  add("over rows", sum(x, {0}));
  add("over columns", sum(x, {1}));
}

}  // namespace

Command add_reduce(CLI::App& app) {
  CLI::App* command = app.add_subcommand("reduce", "Sums of a matrix: whole, over its rows and over its columns");
  const auto options = std::make_shared<ReduceOptions>();
  command->add_option("--rows", options->rows, "Rows")
      ->transform(samples::whole_number(1, 1 << 28))
      ->capture_default_str();
  command->add_option("--columns", options->columns, "Columns")
      ->transform(samples::whole_number(1, 1 << 28))
      ->capture_default_str();
  add_dtype(*command, options->dtype);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
