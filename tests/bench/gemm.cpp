#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>

#include "bench/commands.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct GemmOptions {
  std::int64_t m = 1024;
  std::int64_t n = 1024;
  std::int64_t k = 1024;
  std::int64_t batch = 1;
  MatmulOptions transposes;
  std::string dtype = "f32";
};

/// {rows, columns}, swapped if transposed, for every matrix of a batch.
Shape matrix(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed) {
  Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
  if (batch > 1) shape.insert(shape.begin(), batch);
  return shape;
}

std::string name_of(const GemmOptions& options) {
  return fmt::format("gemm {} {}{}x{}x{}{}{}", options.dtype,
                     options.batch > 1 ? fmt::format("{} of ", options.batch) : "", options.m, options.n, options.k,
                     options.transposes.transpose_a ? " A^T" : "", options.transposes.transpose_b ? " B^T" : "");
}

void run(const GemmOptions& options, const Bench& bench, Report& report) {
  const auto [m, n, k, batch, transposes, dtype] = options;
  Graph graph;
  const Tensor a = graph.input("a", matrix(batch, m, k, transposes.transpose_a), dtype_of(dtype));
  const Tensor b = graph.input("b", matrix(batch, k, n, transposes.transpose_b), dtype_of(dtype));
  const Tensor c = matmul(a, b, transposes);
  const double flops = 2.0 * static_cast<double>(batch * m) * static_cast<double>(n) * static_cast<double>(k);
  report.add(name_of(options), bench.run(graph, c), flops);
}

}  // namespace

Command add_gemm(CLI::App& app) {
  CLI::App* command = app.add_subcommand("gemm", "A matrix product: m x k times k x n");
  const auto options = std::make_shared<GemmOptions>();
  constexpr std::int64_t most = 1 << 20;
  command->add_option("--m", options->m, "Rows of the result")
      ->transform(samples::whole_number(1, most))
      ->capture_default_str();
  command->add_option("--n", options->n, "Columns of the result")
      ->transform(samples::whole_number(1, most))
      ->capture_default_str();
  command->add_option("--k", options->k, "Terms of each sum")
      ->transform(samples::whole_number(1, most))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Products at once")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_flag("--transpose-a", options->transposes.transpose_a, "The first matrix lies in memory as k x m");
  command->add_flag("--transpose-b", options->transposes.transpose_b, "The second matrix lies in memory as n x k");
  add_dtype(*command, options->dtype);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
