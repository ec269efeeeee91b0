#include "samples/watch/watch.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

#include "samples/watch/log.h"
#include "samples/watch/plot.h"
#include "samples/watch/step_graph.h"
#include "samples/watch/tensorboard.h"
#include "samples/watch/trace.h"

namespace samples {
namespace {

std::vector<std::unique_ptr<Sink>> sinks_of(const WatchOptions& options, const RunStart& start) {
  std::vector<std::unique_ptr<Sink>> sinks;
  std::vector<Record> before;  // of the run that goes on, as far as the log has it
  if (!options.log.empty()) {
    if (start.resumed && has_line(options.log)) before = read_log(options.log);
    go_back_to(start.step, before);
    sinks.push_back(std::make_unique<Log>(options.log, start.resumed));
  }
  if (!options.tensorboard.empty()) sinks.push_back(std::make_unique<TensorBoard>(options.tensorboard));
  if (!options.plot.empty()) sinks.push_back(std::make_unique<Plot>(options.plot, before));
  return sinks;
}

}  // namespace

Watch::Watch(halfstep::Trainer& trainer, const WatchOptions& options, const RunStart& start, bool writes)
    : inspector_(trainer.inspect()), options_(options), writes_(writes), step_(start.step) {
  if (!writes) return;
  sinks_ = sinks_of(options, start);
  if (!options.graph.empty()) write_step_graph(options.graph, inspector_.planned());
  if (sinks_.empty()) return;
  if (!options.tensors.empty()) inspector_.watch(options.tensors, options.tensors_every);
  static_cast<void>(inspector_.take_reports());
  write(start_record(start, inspector_.summary()));
  for (const std::string& decision : *options.decisions) write(decision_record(decision));
}

void Watch::write(const Record& record) {
  std::erase_if(sinks_, [&](const std::unique_ptr<Sink>& sink) {
    try {
      sink->write(record);
      return false;
    } catch (const halfstep::Error& error) {
      fmt::print(stderr, "warning: {}; training goes on without it\n", error.what());
      if (!failure_) failure_ = error;
      return true;
    }
  });
}

std::int64_t Watch::first_steps(std::int64_t most) {
  constexpr std::int64_t enough = 8;
  halfstep::Timeline timeline;
  std::int64_t steps = 0;
  if (!options_.trace.empty()) {
    if (most < 1) halfstep::fail("--trace", "expected two steps or more before a test, got one");
    timeline = inspector_.timeline(std::min(enough, most), halfstep::interrupted);
    steps = static_cast<std::int64_t>(timeline.dispatches.front().runs.size());
    if (writes_) write_trace(options_.trace, timeline);
  }
  if (!sinks_.empty()) write(operators_record(inspector_.planned(), timeline));
  take();
  return steps;
}

void Watch::take() {
  if (sinks_.empty()) return;
  const double now = seconds();
  for (const halfstep::StepReport& report : inspector_.take_reports()) {
    step_ = report.step;
    write(step_record(report, now));
  }
  for (const halfstep::TensorStatistics& seen : inspector_.take_records()) write(tensor_record(seen));
}

void Watch::after_step() {
  take();
}

void Watch::evaluated(const EpochResult& result) {
  take();
  write(evaluation_record(result, step_, seconds()));
}

void Watch::pictured(const std::string& name, const std::filesystem::path& file, int width, int height) {
  write(picture_record(step_, name, file, width, height));
}

void Watch::end(bool complete) {
  take();
  write(end_record(step_, complete, seconds()));
}

void Watch::finish() const {
  if (failure_) throw *failure_;
}

}  // namespace samples
