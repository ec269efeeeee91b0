// Lists the contents of a safetensors file:
//
//   $ bin/inspect model.safetensors
//   model.safetensors: 13 tensors, 781198 values
//     optimizer = adam
//     precision = mixed
//     ...
//   conv1/weight                F32      {3, 3, 1, 32}       -1.39879       1.31296
//   conv1/weight.first_moment   F32      {3, 3, 1, 32}     -0.0280608       2.46907
//   ...
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "samples/common/checkpoint.h"
#include "samples/common/command_line.h"

using namespace halfstep;

namespace {

void print(const std::filesystem::path& path, const CheckpointSummary& summary) {
  std::int64_t values = 0;
  std::size_t name_width = 0;
  std::size_t shape_width = 0;
  for (const TensorSummary& tensor : summary.tensors) {
    values += elements(tensor.shape);
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, to_string(tensor.shape).size());
  }
  fmt::print("{}: {} tensors, {} values\n", path.string(), summary.tensors.size(), values);
  for (const auto& [key, text] : summary.metadata)
    fmt::print("  {} = {}\n", samples::printable(key), samples::printable(text));
  for (const TensorSummary& tensor : summary.tensors) {
    const bool any = tensor.minimum <= tensor.maximum;
    fmt::print("{:{}}  {:7}  {:{}}", samples::printable(tensor.name), name_width, tensor.dtype, to_string(tensor.shape),
               shape_width);
    if (any) fmt::print("  {:12.6g}  {:12.6g}", tensor.minimum, tensor.maximum);
    if (tensor.not_finite > 0) fmt::print("  {} not finite", tensor.not_finite);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Lists the tensors of a safetensors file: names, types, shapes, ranges and values that are not finite.");
  std::filesystem::path path;
  app.add_option("file", path, "A safetensors file")->required();
  return samples::run_program(app, argc, argv, [&] {
    const CheckpointSummary summary = summarize_checkpoint(path);
    print(path, summary);
    samples::warn_of_values_not_finite(path, summary);
    return samples::exit_done;
  });
}
