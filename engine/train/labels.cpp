#include "train/labels.h"

#include <halfstep/ops.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "graph/operator.h"
#include "passes/backward.h"

namespace halfstep::train {
namespace {

bool is_ignored(std::uint32_t label, std::uint32_t also_ignored) {
  return label == ignored_label || label == also_ignored;
}

/// Whether the node gives labels the bits that its only input has, such as a reshape.
bool passes_labels_on(const graph::Ir& ir, const graph::Node& node) {
  const auto is_integer = [&](graph::ValueId value) { return ir.values[value].type.dtype == DType::u32; };
  if (node.inputs.size() != 1 || !is_integer(node.inputs[0])) return false;
  const TensorType type = ir.values[node.inputs[0]].type;
  return node.op->moves_bits({&type, 1}) && std::ranges::all_of(node.outputs, is_integer);
}

Judged judged_by(const graph::Ir& ir, const graph::Node& judge) {
  Judged result{.labels = judge.inputs[1], .also_ignored = *judge.op->also_ignored()};
  result.rows = elements(ir.values[result.labels].type.shape);
  if (judge.outputs.size() > 1) result.statistics = judge.outputs[1];
  while (ir.values[result.labels].origin == graph::Origin::node) {
    const graph::Node& node = ir.nodes[ir.values[result.labels].producer];
    const bool passes_all_on =
        passes_labels_on(ir, node) && elements(ir.values[node.inputs[0]].type.shape) == result.rows;
    if (!passes_all_on) break;
    result.labels = node.inputs[0];
  }
  return result;
}

}  // namespace

bool Classes::allow(std::uint32_t label) const {
  return label < count || is_ignored(label, also_ignored);
}

std::int64_t Classes::largest_in(const Field& field) const {
  // The bound says it, unless what exceeds the classes may be the label that is ignored.
  if (field.bound != 0 && (field.bound <= count || field.bound <= also_ignored)) return field.bound;
  std::int64_t largest = 0;
  for_each_integer(field.type, field.data, [&](std::uint32_t label) {
    if (!is_ignored(label, also_ignored)) largest = std::max(largest, std::int64_t{label} + 1);
  });
  return largest;
}

std::vector<Classes> classes_of(const graph::Ir& ir, std::span<const graph::ValueId> outputs, graph::ValueId input) {
  if (ir.values[input].type.dtype != DType::u32) return {};
  std::vector<graph::ValueId> computed(outputs.begin(), outputs.end());
  for (const graph::Update& update : ir.updates) computed.push_back(update.next);
  std::set<graph::ValueId> labels{input};
  std::vector<Classes> all;
  for (const graph::NodeId id : passes::needed_nodes(ir, computed)) {
    const graph::Node& node = ir.nodes[id];
    if (node.op->also_ignored() && labels.contains(node.inputs[1])) {
      all.push_back({node.op->name(), ir.values[node.inputs[0]].type.shape.back(), *node.op->also_ignored()});
    } else if (passes_labels_on(ir, node) && labels.contains(node.inputs[0])) {
      labels.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  return all;
}

std::int64_t JudgedRows::count(std::span<const std::byte> labels) const {
  std::int64_t counted = 0;
  for_each_integer(type, labels, [&](std::uint32_t label) { counted += is_ignored(label, also_ignored) ? 0 : 1; });
  return counted;
}

std::optional<Judged> judged(const graph::Ir& ir, graph::ValueId value) {
  std::set<graph::ValueId> needed{value};
  std::optional<Judged> found;
  for (const graph::Node& node : ir.nodes | std::views::reverse) {
    if (std::ranges::none_of(node.outputs, [&](graph::ValueId output) { return needed.contains(output); })) continue;
    if (!node.op->also_ignored()) {
      needed.insert(node.inputs.begin(), node.inputs.end());
      continue;
    }
    const Judged judge = judged_by(ir, node);
    if (found && !found->has_rows_of(judge)) return std::nullopt;
    if (!found || judge.statistics) found = judge;
  }
  const auto is_input = [&](graph::ValueId id) { return ir.values[id].origin == graph::Origin::input; };
  if (std::ranges::any_of(needed, is_input)) return std::nullopt;  // of rows that no label tells of
  return found;
}

std::optional<JudgedRows> judged_rows(const graph::Ir& ir, graph::ValueId value, const step::SampleInputs& inputs) {
  const std::optional<Judged> judge = judged(ir, value);
  if (!judge) return std::nullopt;
  const auto found = std::ranges::find(inputs.fields, judge->labels, &step::FieldInput::input);
  if (found == inputs.fields.end()) return std::nullopt;
  return JudgedRows{static_cast<std::size_t>(found - inputs.fields.begin()), found->type, judge->also_ignored};
}

}  // namespace halfstep::train
