#pragma once

#include <halfstep/halfstep.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "samples/watch/options.h"
#include "samples/watch/records.h"

namespace samples {

/// Writes what the flags ask for about a run while it trains. A file that cannot be written is a warning, once;
/// training goes on without it, and finish() throws. Does nothing, and costs nothing, where nothing is asked for.
class Watch {
 public:
  /// Of a trainer that was compiled with watched(), before its next step. Only one of several ranks `writes`; the
  /// others make the same steps. Throws Error where a file cannot be opened, or no tensor matches the pattern.
  Watch(halfstep::Trainer& trainer, const WatchOptions& options, const RunStart& start, bool writes = true);

  /// To be called before the run's first step. Makes up to `most` steps of the training for --trace, fewer where the
  /// user stops them, and returns how many: none where it is not asked for.
  std::int64_t first_steps(std::int64_t most);
  /// To be called after each step.
  void after_step();
  /// To be called after each test; its step is the last that was made.
  void evaluated(const EpochResult& result);
  /// To be called where a picture was written to a file, of `width` and `height` pixels.
  void pictured(const std::string& name, const std::filesystem::path& file, int width, int height);
  /// Ends the records. `complete` is false where the run was stopped.
  void end(bool complete);
  /// Throws the first Error that kept a file from being written.
  void finish() const;

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void take();
  void write(const Record& record);

  halfstep::Inspector inspector_;
  const WatchOptions& options_;
  bool writes_;
  Clock::time_point begin_ = Clock::now();
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::uint64_t step_;  ///< of the newest record
  std::optional<halfstep::Error> failure_;
};

}  // namespace samples
