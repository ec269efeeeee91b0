#include "train/pulled_tensors.h"

#include <optional>

#include "harness/device.h"

namespace halfstep::testing {
namespace {

Trainer compiled(const std::vector<PulledTensor>& tensors, TrainerOptions options) {
  Graph graph;
  std::optional<Tensor> loss;
  for (const PulledTensor& tensor : tensors) {
    const Tensor w = graph.root().parameter(tensor.name, tensor.shape, constant(tensor.start));
    const Tensor term = sum(mul(w, graph.input("pull of " + tensor.name, tensor.shape)));
    loss = loss ? add(*loss, term) : term;
  }
  options.loss = *loss;
  return Trainer::compile(device(), graph, std::move(options));
}

}  // namespace

PulledTensors::PulledTensors(const std::vector<PulledTensor>& tensors, TrainerOptions options)
    : trainer_(compiled(tensors, std::move(options))) {}

void PulledTensors::step(const std::map<std::string, std::vector<float>>& pulls) {
  std::map<std::string, Values> values;
  for (const auto& [name, pull] : pulls) values["pull of " + name] = std::span<const float>(pull);
  trainer_.step(values);
  trainer_.finish();
}

}  // namespace halfstep::testing
