#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <cstdint>

namespace samples {

/// Shows the progress of an epoch, and the time that is left of all of them: a bar that is redrawn on a terminal, as
/// wide as that is at the time, or a line per tenth of the epoch elsewhere: in a pipe, and where CI or TERM=dumb is
/// set.
class Progress {
 public:
  /// `samples` names what the batches consist of.
  Progress(std::int64_t epoch, std::int64_t epochs, std::int64_t steps, std::int64_t batch_size, const char* samples,
           bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Removes the bar from the terminal.
  ~Progress();

  /// `done` steps of the epoch are finished, `fresh` of them in this run; `report` is the newest.
  void update(std::int64_t done, std::int64_t fresh, const halfstep::StepReport& report);

 private:
  bool due(std::int64_t done);

  std::int64_t epoch_;
  std::int64_t epochs_;
  std::int64_t steps_;
  std::int64_t batch_size_;
  const char* samples_;
  bool quiet_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  std::int64_t tenth_ = 0;
};

}  // namespace samples
