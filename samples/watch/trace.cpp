#include "samples/watch/trace.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <span>
#include <string>

namespace samples {
namespace {

using nlohmann::ordered_json;

constexpr int process = 1;
enum Thread { host = 1, device = 2, loader = 3 };

ordered_json process_name() {
  return {{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", "Halfstep"}}}};
}

ordered_json thread_name(Thread thread, const char* name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

double nanoseconds(double microseconds) {
  return std::round(1000 * microseconds);
}

/// A complete event: when it began and how long it took, in microseconds. Whole nanoseconds, or readers that round to
/// those take it for one that overlaps the next.
ordered_json slice(const std::string& name, const std::string& category, Thread thread,
                   const halfstep::Interval& time) {
  const double begin = nanoseconds(time.begin);
  const double length = nanoseconds(time.end) - begin;
  return {{"name", name},         {"cat", category}, {"ph", "X"},    {"ts", begin / 1000},
          {"dur", length / 1000}, {"pid", process},  {"tid", thread}};
}

/// One end, "b" or "e", of the time that a step was submitted and had not begun: those of two steps may overlap.
ordered_json queued(const char* end, std::size_t step, double time) {
  return {{"name", "queued"},
          {"cat", "queue"},
          {"ph", end},
          {"ts", nanoseconds(time) / 1000},
          {"id2", {{"local", std::to_string(step)}}},
          {"pid", process},
          {"tid", device},
          {"args", {{"step", step}}}};
}

void add_device(ordered_json& events, const halfstep::Timeline& timeline) {
  for (const halfstep::DispatchCost& cost : timeline.dispatches) {
    for (std::size_t step = 0; step < cost.runs.size(); ++step) {
      ordered_json event = slice(cost.label, "device", device, cost.runs[step]);
      event["args"] = {{"shader", cost.shader}, {"step", step}, {"flops", cost.flops}, {"bytes", cost.bytes}};
      events.push_back(std::move(event));
    }
  }
}

void add_host(ordered_json& events, const halfstep::Timeline& timeline) {
  for (const halfstep::HostSpan& span : timeline.host) {
    const bool loads = span.what == "load";
    ordered_json event = slice(span.what, loads ? "loader" : "host", loads ? loader : host, span.time);
    event["args"] = {{"step", span.step}};
    events.push_back(std::move(event));
    const bool submit = span.what == "submit" && !timeline.dispatches.empty();
    if (!submit) continue;
    const auto step = static_cast<std::size_t>(span.step);
    const double begins = timeline.dispatches.front().runs[step].begin;
    if (begins <= span.time.end) continue;
    events.push_back(queued("b", step, span.time.end));
    events.push_back(queued("e", step, begins));
  }
}

}  // namespace

void write_trace(const std::filesystem::path& path, const halfstep::Timeline& timeline) {
  ordered_json events = {process_name(), thread_name(host, "host"), thread_name(device, "device"),
                         thread_name(loader, "loader")};
  add_device(events, timeline);
  add_host(events, timeline);
  const ordered_json file{{"displayTimeUnit", "ms"},
                          {"otherData", {{"clock_error_us", timeline.clock_error}}},
                          {"traceEvents", std::move(events)}};
  // An application's own kernels are named by it, and may not be UTF-8.
  const std::string text = file.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  const halfstep::Bytes part = std::as_bytes(std::span(text));
  halfstep::write_atomically(path, std::span(&part, 1));
}

}  // namespace samples
