#include "train/parity.h"

#include <cmath>
#include <cstring>

#include "harness/device.h"
#include "passes/backward.h"
#include "train/parity_texts.h"
#include "train/stored_values.h"

namespace halfstep::testing {
namespace {

std::vector<graph::ValueId> outputs_of(const OneStep& step) {
  std::vector<graph::ValueId> outputs{step.loss, step.logits};
  outputs.insert(outputs.end(), step.gradients.begin(), step.gradients.end());
  return outputs;
}

}  // namespace

OneStep::OneStep(const Graph& graph, Tensor wanted_loss, Tensor wanted_logits, const Precision& precision)
    : lowered(passes::apply_precision(graph.ir(), precision)),
      parameters(lowered.ir.of(graph::Origin::parameter)),
      states(lowered.ir.of(graph::Origin::state)),
      seed(lowered.ir.add_value({{DType::f32, {}}, "loss_scale", graph::Origin::state, 0, {}})),
      loss(of(wanted_loss)),
      logits(of(wanted_logits)),
      gradients(passes::add_backward(lowered.ir, loss, seed, parameters)),
      execution(context(), lowered.ir, outputs_of(*this)) {}

Json read_parity(const std::string& file) {
  return Json::parse(parity_text(file));
}

std::uint64_t word(std::string_view name, std::uint64_t i) {
  std::uint64_t seed = 0xCBF29CE484222325;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::vector<float> uniform(std::string_view name, const Shape& shape, double low, double high) {
  std::vector<float> values(static_cast<std::size_t>(elements(shape)));
  std::uint64_t i = 0;
  for (float& value : values) {
    value = static_cast<float>(low + (high - low) * static_cast<double>(word(name, i++) >> 40) * 0x1p-24);
  }
  return values;
}

std::vector<float> in_their_order(std::span<const float> values, const Shape& shape, const Axes& stored) {
  const std::vector<std::byte> bytes = train::encode(DType::f32, shape, stored, values);
  std::vector<float> result(values.size());
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

double distance(const std::string& name, std::span<const float> values, const Json& digest) {
  const std::vector<double> wanted = digest.at("projections");
  std::vector<double> found(wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t signs = word(name + " signs", i);
    for (std::size_t k = 0; k < found.size(); ++k) {
      found[k] += (signs >> k & 1) == 1 ? static_cast<double>(values[i]) : -static_cast<double>(values[i]);
    }
  }
  double square = 0;
  for (std::size_t k = 0; k < found.size(); ++k) square += (found[k] - wanted[k]) * (found[k] - wanted[k]);
  return std::sqrt(square / static_cast<double>(found.size()));
}

}  // namespace halfstep::testing
