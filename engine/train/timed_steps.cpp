#include "train/timed_steps.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "train/profile.h"

namespace halfstep::train {
namespace {

using Clock = std::chrono::steady_clock;

/// A finished run on the device's clock.
struct DeviceRun {
  std::uint64_t first_tick = 0;
  std::vector<step::DispatchTime> dispatches;
  double seen = 0;  ///< on the host's clock: its end
};

/// What the two clocks are known to differ by: the device's begins with its first run.
class Offset {
 public:
  void began_after(double host, double device) { least_ = std::max(least_, host - device); }
  void ended_before(double host, double device) { most_ = std::min(most_, host - device); }
  double middle() const { return (least_ + most_) / 2; }
  double error() const { return std::max(0.0, (most_ - least_) / 2); }

 private:
  double least_ = -std::numeric_limits<double>::infinity();
  double most_ = std::numeric_limits<double>::infinity();
};

/// Notes when batches are loaded, while it lives.
class LoadsNoted {
 public:
  explicit LoadsNoted(LoadTimes& times) : times_(times) { times_.start(); }
  ~LoadsNoted() { times_.stop(); }
  LoadsNoted(const LoadsNoted&) = delete;
  LoadsNoted& operator=(const LoadsNoted&) = delete;
  std::vector<LoadTimes::Load> take() { return times_.stop(); }

 private:
  LoadTimes& times_;
};

/// Times of steps as they run.
class Notes {
 public:
  double now() const { return since_start(Clock::now()); }
  double since_start(Clock::time_point time) const {
    return std::chrono::duration<double, std::micro>(time - start_).count();
  }

  void finished(const run::Slot& slot) {
    runs_.push_back({slot.recording->first_tick(), slot.recording->dispatch_times(), now()});
  }
  /// Notes that `what` took from `begin` until now, and returns now.
  double note(const char* what, std::int64_t step, double begin) {
    const double end = now();
    host_.push_back({what, static_cast<std::uint64_t>(step), {begin, end}});
    return end;
  }
  void submitted(double begin) { submits_.push_back(begin); }

  Timeline timeline(std::vector<DispatchCost> costs, const vk::Context& context) && {
    Timeline result{.dispatches = std::move(costs), .host = std::move(host_)};
    Offset offset;
    std::vector<double> begins;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      begins.push_back(vk::microseconds(context, runs_.front().first_tick, runs_[i].first_tick));
      offset.began_after(submits_[i], begins.back());
      offset.ended_before(runs_[i].seen, begins.back() + runs_[i].dispatches.back().end);
    }
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const double begin = begins[i] + offset.middle();
      for (std::size_t j = 0; j < result.dispatches.size(); ++j) {
        const step::DispatchTime& time = runs_[i].dispatches[j];
        result.dispatches[j].runs.push_back({begin + time.begin, begin + time.end});
      }
    }
    set_medians(result.dispatches);
    result.clock_error = offset.error();
    return result;
  }

 private:
  Clock::time_point start_ = Clock::now();
  std::vector<HostSpan> host_;
  std::vector<double> submits_;  ///< when each submit began
  std::vector<DeviceRun> runs_;
};

}  // namespace

Timeline timeline(const TimedSteps& timed, std::int64_t steps, LoadTimes& load_times) {
  const auto notes = std::make_shared<Notes>();
  run::Program& program = timed.make([notes](const run::Slot& slot) { notes->finished(slot); });
  LoadsNoted loads(load_times);
  std::int64_t made = 0;
  while (made < steps) {
    double begin = notes->now();
    timed.step([&](const run::Program& of, run::Slot& slot) {
      begin = notes->note("wait", made, begin);
      timed.fill(of, slot);
      begin = notes->note("fill", made, begin);
      notes->submitted(begin);
    });
    notes->note("submit", made++, begin);
    if (timed.stop && timed.stop()) break;
  }
  const double begin = notes->now();
  program.slots().drain();
  notes->note("wait", made - 1, begin);
  Timeline result =
      std::move(*notes).timeline(dispatches_of(program.plan().program), program.workspace().runtime->context());
  for (const LoadTimes::Load& load : loads.take()) {
    result.host.push_back({"load",
                           static_cast<std::uint64_t>(load.batch),
                           {notes->since_start(load.begin), notes->since_start(load.end)}});
  }
  return result;
}

}  // namespace halfstep::train
