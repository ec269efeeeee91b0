#include "samples/watch/operators.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "samples/watch/fields.h"

namespace samples {
namespace {

std::string result_text(const Record& tensor) {
  std::string shape;
  for (const Record& extent : inside(tensor, "shape")) {
    if (!extent.is_number_integer()) continue;
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent.get<std::int64_t>());
  }
  return shape.empty() ? text(tensor, "name") : fmt::format("{} {{{}}}", text(tensor, "type"), shape);
}

OperatorCost cost_of(const Record& row) {
  OperatorCost cost{.label = text(row, "label"), .phase = text(row, "phase"), .shader = text(row, "shader")};
  cost.milliseconds = amount(row, "milliseconds");
  cost.flops = amount(row, "flops");
  cost.bytes_moved = amount(row, "bytes");
  if (row.value("recomputed", Record(false)) == true) cost.label += " (recomputed)";
  for (const Record& tensor : inside(row, "writes")) {
    if (!tensor.is_object()) continue;
    if (cost.result.empty()) cost.result = result_text(tensor);
    cost.result_bytes += amount(tensor, "bytes");
  }
  return cost;
}

}  // namespace

std::vector<OperatorCost> operators_of(const std::vector<Record>& records) {
  std::vector<OperatorCost> newest;
  bool timed = false;
  for (const Record& record : records) {
    if (text(record, "kind") != "operators") continue;
    std::vector<OperatorCost> costs;
    for (const Record& row : inside(record, "rows")) {
      if (row.is_object()) costs.push_back(cost_of(row));
    }
    const bool has_times = std::ranges::any_of(costs, [](const OperatorCost& cost) { return cost.milliseconds > 0; });
    if (timed && !has_times) continue;
    timed = has_times;
    newest = std::move(costs);
  }
  return newest;
}

std::vector<OperatorCost> kinds_of(const std::vector<OperatorCost>& operators) {
  std::map<std::string, OperatorCost> kinds;
  std::map<std::string, std::size_t> counts;
  for (const OperatorCost& each : operators) {
    const std::string first = each.label.substr(0, each.label.find(" + "));
    const std::string name = first.substr(first.rfind('/') + 1);
    OperatorCost& kind = kinds[name];
    kind.label = name;
    kind.phase = std::to_string(++counts[name]);
    kind.milliseconds += each.milliseconds;
    kind.flops += each.flops;
    kind.bytes_moved += each.bytes_moved;
    kind.result_bytes += each.result_bytes;
  }
  std::vector<OperatorCost> result;
  for (auto& [name, kind] : kinds) result.push_back(std::move(kind));
  return result;
}

}  // namespace samples
