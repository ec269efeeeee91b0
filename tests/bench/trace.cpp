#include "bench/trace.h"

#include <halfstep/process.h>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using nlohmann::ordered_json;

ordered_json event_of(const halfstep::DispatchCost& cost, std::size_t step, double step_begin) {
  const halfstep::Interval& run = cost.runs[step];
  return {{"name", cost.label},
          {"cat", cost.shader},
          {"ph", "X"},  // a complete event: begin and length, in microseconds
          {"ts", step_begin + run.begin},
          {"dur", run.end - run.begin},
          {"pid", 1},
          {"tid", 1},
          {"args", {{"shader", cost.shader}, {"step", step}, {"flops", cost.flops}, {"bytes", cost.bytes}}}};
}

}  // namespace

void write_trace(const std::filesystem::path& path, std::span<const halfstep::DispatchCost> costs) {
  ordered_json file{{"displayTimeUnit", "ms"}, {"traceEvents", ordered_json::array()}};
  const std::size_t steps = costs.empty() ? 0 : costs[0].runs.size();
  double step_begin = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    for (const halfstep::DispatchCost& cost : costs) file["traceEvents"].push_back(event_of(cost, step, step_begin));
    step_begin += costs.back().runs[step].end;
  }
  const std::string text = file.dump(1) + "\n";
  const halfstep::Bytes part = std::as_bytes(std::span(text));
  halfstep::write_atomically(path, std::span(&part, 1));
}

}  // namespace bench
