#include "bench/report.h"

#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace bench {
namespace {

using nlohmann::ordered_json;

/// Per second, in units of 10^9.
double billions(double amount, double milliseconds) {
  return amount / milliseconds / 1e6;
}

/// The rate a row is judged by, with its unit.
std::string rate(double flops, double bytes, double milliseconds) {
  if (flops > 0) return fmt::format("{:.1f} GFLOPS", billions(flops, milliseconds));
  if (bytes > 0) return fmt::format("{:.1f} GB/s", billions(bytes, milliseconds));
  return "";
}

ordered_json json_of(const OperatorCost& cost) {
  return {{"label", cost.label},
          {"shader", cost.shader},
          {"milliseconds", cost.milliseconds},
          {"flops", cost.flops},
          {"bytes", cost.bytes}};
}

}  // namespace

Times times_of(std::vector<double> milliseconds) {
  if (milliseconds.empty()) halfstep::fail("bench", "expected at least one time, got none");
  std::ranges::sort(milliseconds);
  const std::size_t last = milliseconds.size() - 1;
  return {milliseconds[last / 2], milliseconds.front(), milliseconds[last * 3 / 4] - milliseconds[last / 4]};
}

void Report::add_operators(std::vector<OperatorCost> operators, std::size_t shown) {
  operators_ = std::move(operators);
  operators_shown_ = std::min(shown, operators_.size());
}

void Report::print() const {
  fmt::print("{}, {}; times by {}\n", device_.name, device_.driver, timer_);
  fmt::print("{:<46} {:>11} {:>11} {:>9}  {}\n", "", "median", "minimum", "spread", "rate");
  for (const Result& result : results_) {
    const Times& times = result.times;
    fmt::print("{:<46} {:>8.3f} ms {:>8.3f} ms {:>6.3f} ms  {}\n", result.name, times.median, times.least, times.spread,
               rate(result.flops, result.bytes, times.median));
    for (const auto& [name, value] : result.figures) fmt::print("  {:<44} {:>11.1f}\n", name, value);
  }
  if (operators_.empty()) return;
  std::vector<OperatorCost> costs = operators_;
  std::ranges::stable_sort(costs, std::greater{}, &OperatorCost::milliseconds);
  double total = 0;
  for (const OperatorCost& cost : costs) total += cost.milliseconds;
  fmt::print("{} of {} dispatches, {:.3f} ms in all\n", operators_shown_, costs.size(), total);
  costs.resize(operators_shown_);
  for (const OperatorCost& cost : costs) {
    fmt::print("  {:<40} {:<34} {:>8.3f} ms {:>5.1f}%  {}\n", cost.label, cost.shader, cost.milliseconds,
               100 * cost.milliseconds / total, rate(cost.flops, cost.bytes, cost.milliseconds));
  }
}

void Report::write_json(const std::filesystem::path& path) const {
  ordered_json results = ordered_json::array();
  for (const Result& result : results_) {
    const Times& times = result.times;
    ordered_json row{{"name", result.name},      {"device", device_.name},    {"driver", device_.driver},
                     {"timer", timer_},          {"median_ms", times.median}, {"minimum_ms", times.least},
                     {"spread_ms", times.spread}};
    if (result.flops > 0) row["gflops"] = billions(result.flops, times.median);
    if (result.bytes > 0) row["gbytes_per_second"] = billions(result.bytes, times.median);
    for (const auto& [name, value] : result.figures) row[name] = value;
    results.push_back(std::move(row));
  }
  ordered_json file{{"results", std::move(results)}};
  if (!operators_.empty()) file["operators"] = ordered_json::array();
  for (const OperatorCost& cost : operators_) file["operators"].push_back(json_of(cost));
  const std::string text = file.dump(2) + "\n";
  const halfstep::Bytes part = std::as_bytes(std::span(text));
  halfstep::write_atomically(path, std::span(&part, 1));
}

}  // namespace bench
