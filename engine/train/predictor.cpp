#include <halfstep/error.h>
#include <halfstep/predictor.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/backward.h"
#include "passes/inference.h"
#include "passes/precision.h"
#include "passes/weight_nodes.h"
#include "state/parameters.h"
#include "step/execution.h"
#include "train/checkpoint_reader.h"
#include "train/stored_values.h"

namespace halfstep {
namespace {

/// The graph as it is evaluated, in the types of a policy.
passes::LoweredPrecision evaluated(const Graph& graph, const Precision& precision) {
  passes::LoweredPrecision lowered =
      passes::for_inference(passes::apply_precision(graph.ir(), precision), [](const graph::Node&) { return true; });
  lowered.ir.updates.clear();
  return lowered;
}

/// Without the nodes that `output` does not depend on: losses and metrics.
graph::Ir only_for(const graph::Ir& ir, graph::ValueId output) {
  graph::Ir result = ir;
  result.nodes.clear();
  const graph::ValueId wanted[] = {output};
  for (const graph::NodeId node : passes::needed_nodes(ir, wanted)) {
    for (const graph::ValueId value : ir.nodes[node].outputs) {
      result.values[value].producer = static_cast<graph::NodeId>(result.nodes.size());
    }
    result.nodes.push_back(ir.nodes[node]);
  }
  return result;
}

/// Values of one origin that a node takes.
std::vector<graph::ValueId> read_values(const graph::Ir& ir, graph::Origin origin) {
  std::set<graph::ValueId> found;
  for (const graph::Node& node : ir.nodes) {
    for (const graph::ValueId input : node.inputs) {
      if (ir.values[input].origin == origin) found.insert(input);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace

class Predictor::Impl {
 public:
  Impl(const Device& device, const Graph& graph, Tensor output, const Precision& precision) : device_(device) {
    graph::expect_value("predictor", "an output", graph.ir(), output);
    const passes::LoweredPrecision lowered = evaluated(graph, precision);
    output_ = lowered.value.at(output.id());
    const graph::Ir ir = only_for(lowered.ir, output_);
    split_ = passes::split_at_weights(ir);
    inputs_ = read_values(ir, graph::Origin::input);
    weights_ = read_values(ir, graph::Origin::parameter);
    for (const graph::ValueId state : read_values(ir, graph::Origin::state)) weights_.push_back(state);
    layout_ = state::ParameterLayout(ir, weights_, std::vector<state::Training>(weights_.size()));
    rest_ = std::make_unique<step::Execution>(vk::context_of(device_), split_.rest, std::vector{output_});
  }

  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options) {
    const io::SafetensorsFile file(path);
    check_format(file.metadata(), path.string());
    train::CheckpointReader reader(file, options);
    std::vector<std::vector<float>> values;
    for (const state::ParameterSlot& slot : layout_.slots()) {
      values.push_back(reader.take(train::stored_name(slot.name), slot));
      if (values.back().empty()) values.back() = state::initial_values(slot, 0);
    }
    LoadReport report = reader.report(path.string());
    fold(values);
    loaded_ = true;
    return report;
  }

  std::vector<float> run(const std::map<std::string, Values>& inputs) {
    if (!loaded_) fail("predictor", "expected weights to run with, got none", "load_weights() takes them from a file");
    if (inputs.size() != inputs_.size()) {
      fail("predictor", fmt::format("expected values for {} inputs, got {}", inputs_.size(), inputs.size()));
    }
    for (const graph::ValueId input : inputs_) set(input, inputs);
    rest_->run();
    return rest_->floats(output_);
  }

 private:
  /// Computes on the device, once, what follows from the weights alone, and leaves all of it with the rest of the
  /// graph.
  void fold(const std::vector<std::vector<float>>& values) {
    for (std::size_t i = 0; i < weights_.size(); ++i) rest_->set(weights_[i], values[i]);
    if (split_.made.empty()) return;
    step::Execution folding(vk::context_of(device_), split_.weights, split_.made);
    for (std::size_t i = 0; i < weights_.size(); ++i) folding.set(weights_[i], values[i]);
    folding.run();
    for (const graph::ValueId made : split_.made) rest_->set(made, folding.floats(made));
  }

  void set(graph::ValueId input, const std::map<std::string, Values>& inputs) {
    const graph::Value& value = split_.rest.values[input];
    const auto given = inputs.find(value.name);
    if (given == inputs.end()) fail("predictor", fmt::format("expected values for input '{}', got none", value.name));
    const auto count = std::visit([](const auto& span) { return std::ssize(span); }, given->second);
    const bool words = std::holds_alternative<std::span<const std::uint32_t>>(given->second);
    if (count != elements(value.type.shape) || words != (value.type.dtype == DType::u32)) {
      fail("predictor", fmt::format("expected {} values of {} for input '{}', got {} of {}", elements(value.type.shape),
                                    to_string(value.type), value.name, count, words ? "u32" : "f32"));
    }
    std::visit([&](const auto& span) { rest_->set(input, span); }, given->second);
  }

  Device device_;
  graph::ValueId output_ = 0;
  passes::WeightSplit split_;
  std::vector<graph::ValueId> inputs_;
  std::vector<graph::ValueId> weights_;  ///< parameters and states
  state::ParameterLayout layout_;        ///< of those, in their order
  std::unique_ptr<step::Execution> rest_;
  bool loaded_ = false;
};

Predictor::Predictor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Predictor Predictor::compile(const Device& device, const Graph& graph, Tensor output, const Precision& precision) {
  return Predictor(std::make_unique<Impl>(device, graph, output, precision));
}

LoadReport Predictor::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  return impl_->load_weights(path, options);
}

std::vector<float> Predictor::run(const std::map<std::string, Values>& inputs) {
  return impl_->run(inputs);
}

}  // namespace halfstep
