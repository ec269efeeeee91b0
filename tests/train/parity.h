#pragma once

#include <halfstep/graph.h>
#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/precision.h"
#include "step/execution.h"

/// What comparisons with PyTorch share; tests/reference/make_parity.py has the other side.
namespace halfstep::testing {

using Json = nlohmann::json;

/// The file of numbers that PyTorch made.
Json read_parity(const std::string& file);

/// 64 random bits for element `i` of the tensor `name`.
std::uint64_t word(std::string_view name, std::uint64_t i);
/// f32 numbers for each element of a tensor.
std::vector<float> uniform(std::string_view name, const Shape& shape, double low, double high);
/// A tensor's values as PyTorch orders them, whose axes `stored` has.
std::vector<float> in_their_order(std::span<const float> values, const Shape& shape, const Axes& stored);
/// The norm of the difference between `values`, in PyTorch's order, and the tensor that `digest` describes.
double distance(const std::string& name, std::span<const float> values, const Json& digest);

/// One step of a graph on the device, with the gradients of its parameters. Inputs, parameters, states and the seed of
/// the gradients are to be set.
struct OneStep {
  OneStep(const Graph& graph, Tensor wanted_loss, Tensor wanted_logits, const Precision& precision);
  OneStep(const OneStep&) = delete;
  OneStep& operator=(const OneStep&) = delete;
  ~OneStep() = default;

  graph::ValueId of(Tensor tensor) const { return lowered.value[tensor.id()]; }
  const graph::Value& value(graph::ValueId id) const { return lowered.ir.values[id]; }

  passes::LoweredPrecision lowered;
  std::vector<graph::ValueId> parameters;
  std::vector<graph::ValueId> states;
  graph::ValueId seed;  ///< the gradient of the loss
  graph::ValueId loss;
  graph::ValueId logits;
  std::vector<graph::ValueId> gradients;  ///< of the parameters
  step::Execution execution;
};

}  // namespace halfstep::testing
