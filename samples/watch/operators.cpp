#include "samples/watch/operators.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace samples
