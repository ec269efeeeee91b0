#include "samples/common/saving.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <utility>

#include "samples/common/ranks.h"

namespace samples {

Saver::Saver(halfstep::Trainer& trainer, const CommonOptions& options, std::map<std::string, std::string> notes,
             Beside beside)
    : trainer_(trainer),
      options_(options),
      saves_(!options.save.empty()),
      notes_(std::move(notes)),
      beside_(std::move(beside)) {}

Saver::~Saver() {
  if (writing_.valid()) writing_.wait();
}

/// The first rank tells the others what its clock says, and whether it still writes.
bool Saver::due(std::int64_t step) {
  if (options_.save_every.steps > 0) {
    return step % options_.save_every.steps == 0 && first_rank_says(!is_writing());
  }
  if (options_.save_every.seconds == 0) return false;
  const std::chrono::duration<double> interval(options_.save_every.seconds);
  return first_rank_says(std::chrono::steady_clock::now() - last_ >= interval && !is_writing());
}

bool Saver::is_writing() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

std::int64_t Saver::steps_to_next(std::int64_t step) const {
  const std::int64_t every = options_.save_every.steps;
  return every > 0 ? every - step % every : std::numeric_limits<std::int64_t>::max();
}

void Saver::after_step(std::int64_t step) {
  if (!saves_ || !due(step)) return;
  settle();
  begin();
  if (!has_weights_) write_weights();
}

void Saver::save() {
  if (!saves_) return;
  settle();
  begin();
  write_weights();
}

void Saver::write_weights() {
  if (writing_.valid()) writing_.wait();  // a disk with room for one of both gets the checkpoint
  has_weights_ = true;                    // on every rank, of which only the first knows whether it failed
  weights_failure_.reset();
  try {
    if (beside_.weights) beside_.weights();
  } catch (const halfstep::Error& error) {
    weights_failure_ = error;
  }
}

void Saver::begin() {
  last_ = std::chrono::steady_clock::now();
  halfstep::Checkpoint taken = trainer_.checkpoint(notes_);  // of what every rank has a part
  if (!is_first_rank()) return;
  writing_ = std::async([this, checkpoint = std::move(taken)] {
    if (beside_.description) beside_.description();
    checkpoint.write(options_.save);
  });
  // Where there can be no further thread, on this one.
  if (writing_.wait_for(std::chrono::seconds(0)) == std::future_status::deferred) writing_.wait();
}

void Saver::settle() {
  try {
    finish();
    failing_ = false;
  } catch (const halfstep::Error& error) {
    if (!failing_) warn_not_saved(error);
    failing_ = true;
  }
}

void Saver::finish() {
  if (writing_.valid()) writing_.get();
  if (weights_failure_) throw *weights_failure_;
}

void warn_not_saved(const halfstep::Error& error) {
  fmt::print(stderr, "warning: {}; training goes on, and what the file held before is still there\n", error.what());
}

}  // namespace samples
