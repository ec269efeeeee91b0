#include "plan/graph_values.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <ranges>

#include "graph/operator.h"

namespace halfstep::plan {

std::uint32_t noise_stream(std::string_view tensor, std::uint32_t run) {
  // The hash of Fowler, Noll and Vo (FNV-1a). The highest bit keeps it apart from the streams that common/rng.glsl
  // names.
  std::uint32_t hash = 2166136261U;
  const auto add = [&](std::uint32_t byte) { hash = (hash ^ byte) * 16777619U; };
  for (const char c : tensor) add(static_cast<unsigned char>(c));
  constexpr std::uint32_t end_of_name = 0xFF;  // no byte of UTF-8
  if (run != 0) add(end_of_name);
  for (std::uint32_t rest = run; rest != 0; rest >>= 8) add(rest & 0xFF);
  return hash | 0x80000000U;
}

TensorId GraphValues::tensor_of(const graph::Ir& ir, graph::ValueId value) const {
  const auto found = bound_.find(value);
  if (found == bound_.end()) {
    fail("plan", fmt::format("expected '{}' to have been computed or fed", ir.values.at(value).name));
  }
  return found->second;
}

bool GraphValues::moments_wanted(const graph::Ir& ir, graph::ValueId value) {
  if (moments_wanted_.size() != ir.values.size()) {
    moments_wanted_.assign(ir.values.size(), false);
    for (const graph::Node& reader : ir.nodes | std::views::reverse) {  // what is computed of its output is known
      if (reader.inputs.empty()) continue;
      std::vector<TensorType> types;
      for (const graph::ValueId input : reader.inputs) types.push_back(ir.values[input].type);
      const bool passes_on = reader.op->keeps_values(types) && moments_wanted_[reader.outputs.front()];
      if (passes_on || reader.op->reads_channel_moments(types)) moments_wanted_[reader.inputs.front()] = true;
    }
  }
  return moments_wanted_[value];
}

void GraphValues::repeat(const graph::Ir& ir) {
  ++run_;
  std::erase_if(bound_, [&](const auto& entry) { return ir.values[entry.first].origin == graph::Origin::node; });
}

}  // namespace halfstep::plan
