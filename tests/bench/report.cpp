#include "bench/report.h"

#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace bench {
namespace {

using nlohmann::ordered_json;

/// The rate per second, in units of 10^9.
double billions(double amount, double milliseconds) {
  return amount / milliseconds / 1e6;
}

/// The main rate of a row, with its unit and its fraction of the device's peak.
std::string rate(double flops, double bytes, double milliseconds, const Peaks& peaks) {
  const auto text = [milliseconds](double amount, const char* unit, double peak) {
    return fmt::format("{:8.1f} {:<6} {:>4.0f}%", billions(amount, milliseconds), unit,
                       100 * amount / milliseconds / peak);
  };
  if (flops > 0) return text(flops, "GFLOPS", peaks.flops);
  if (bytes > 0) return text(bytes, "GB/s", peaks.bytes);
  return "";
}

const char* name(Timer timer) {
  return timer == Timer::timestamps ? "timestamps" : "clock";
}

ordered_json json_of(const Result& result, const halfstep::DeviceInfo& device, const Peaks& peaks) {
  ordered_json row{{"name", result.name},
                   {"device", device.name},
                   {"driver", device.driver},
                   {"timer", name(result.timer)},
                   {"median_ms", result.times.median},
                   {"minimum_ms", result.times.least},
                   {"spread_ms", result.times.spread}};
  if (result.flops > 0) {
    row["gflops"] = billions(result.flops, result.times.median);
    row["share_of_peak_flops"] = result.flops / result.times.median / peaks.flops;
  }
  if (result.bytes > 0) {
    row["bytes"] = result.bytes;
    row["gbytes_per_second"] = billions(result.bytes, result.times.median);
    row["share_of_peak_bandwidth"] = result.bytes / result.times.median / peaks.bytes;
  }
  for (const auto& [figure, value] : result.figures) row[figure] = value;
  return row;
}

ordered_json json_of(const OperatorCost& cost) {
  return {{"label", cost.label},
          {"shader", cost.shader},
          {"milliseconds", cost.milliseconds},
          {"flops", cost.flops},
          {"bytes", cost.bytes}};
}

void print_row(const Result& result, const Peaks& peaks) {
  const Times& times = result.times;
  fmt::print("{:<50} {:>10.3f} {:>10.3f} {:>9.3f}  {:<10}  {}\n", result.name, times.median, times.least, times.spread,
             name(result.timer), rate(result.flops, result.bytes, times.median, peaks));
  for (const auto& [figure, value] : result.figures) fmt::print("  {:<48} {:>10.10g}\n", figure, value);
}

void print_operators(std::vector<OperatorCost> costs, std::size_t shown, const Peaks& peaks) {
  std::ranges::stable_sort(costs, std::greater{}, &OperatorCost::milliseconds);
  double total = 0;
  for (const OperatorCost& cost : costs) total += cost.milliseconds;
  fmt::print("the {} most costly of {} dispatches, which take {:.3f} ms one by one:\n", shown, costs.size(), total);
  costs.resize(shown);
  for (const OperatorCost& cost : costs) {
    fmt::print("  {:<32} {:<32} {:>8.3f} ms {:>5.1f}%  {}\n", cost.label, cost.shader, cost.milliseconds,
               100 * cost.milliseconds / total, rate(cost.flops, cost.bytes, cost.milliseconds, peaks));
  }
}

}  // namespace

Times times_of(std::vector<double> milliseconds) {
  if (milliseconds.empty()) halfstep::fail("bench", "expected at least one time, got none");
  std::ranges::sort(milliseconds);
  const std::size_t count = milliseconds.size();
  const std::size_t last = count - 1;
  const double median = (milliseconds[last / 2] + milliseconds[count / 2]) / 2;
  return {median, milliseconds.front(), milliseconds[last * 3 / 4] - milliseconds[last / 4]};
}

void Report::add(std::string name, const Measured& measured, double flops) {
  Result result{.name = std::move(name), .times = measured.times, .timer = measured.timer};
  result.flops = flops;
  result.bytes = measured.bytes;
  add(std::move(result));
}

void Report::add_operators(std::vector<OperatorCost> operators, std::size_t shown) {
  operators_ = std::move(operators);
  operators_shown_ = std::min(shown, operators_.size());
}

void Report::print() const {
  fmt::print("{}, {}: at most {:.1f} GFLOPS and {:.1f} GB/s\n", device_.name, device_.driver, peaks_.flops / 1e6,
             peaks_.bytes / 1e6);
  fmt::print("{:<50} {:>10} {:>10} {:>9}  {:<10} {:>15} {:>5}\n", "milliseconds", "median", "minimum", "spread", "by",
             "rate", "peak");
  for (const Result& result : results_) print_row(result, peaks_);
  if (!operators_.empty()) print_operators(operators_, operators_shown_, peaks_);
}

void Report::write_json(const std::filesystem::path& path) const {
  ordered_json file{{"results", ordered_json::array()}};
  for (const Result& result : results_) file["results"].push_back(json_of(result, device_, peaks_));
  if (!operators_.empty()) file["operators"] = ordered_json::array();
  for (const OperatorCost& cost : operators_) file["operators"].push_back(json_of(cost));
  const std::string text = file.dump(2) + "\n";
  const halfstep::Bytes part = std::as_bytes(std::span(text));
  halfstep::write_atomically(path, std::span(&part, 1));
}

}  // namespace bench
