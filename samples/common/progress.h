#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace samples {

/// Shows the progress of an epoch, or of all steps, and the time that is left of the whole training: a bar that is
/// redrawn on a terminal, as wide as that is at the time, or a line per tenth elsewhere: in a pipe, under mpirun, and
/// where CI or TERM=dumb is set.
class Progress {
 public:
  /// Of `steps` steps, called `head`, which `steps_after` others follow. `samples` names what the batches consist of.
  Progress(std::string head, std::int64_t steps, std::int64_t steps_after, std::int64_t batch_size, const char* samples,
           bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// `done` of the steps are finished, `fresh` of them in this run; `report` is the newest.
  void update(std::int64_t done, std::int64_t fresh, const halfstep::StepReport& report);
  /// Removes the bar from the terminal, until the next update. To be called before anything else is printed.
  void clear();
  /// To be called after clear(), where steps go on: the time between is none of training's, so the speed and the time
  /// that is left do not count it.
  void go_on();

 private:
  bool due(std::int64_t done);

  std::string head_;
  std::int64_t steps_;
  std::int64_t steps_after_;
  std::int64_t batch_size_;
  const char* samples_;
  bool quiet_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  std::optional<std::chrono::steady_clock::time_point> cleared_;  ///< where no step was made since
  std::int64_t tenth_ = 0;
};

}  // namespace samples
