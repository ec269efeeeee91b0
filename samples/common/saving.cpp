#include "samples/common/saving.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "samples/common/ranks.h"

namespace samples {

Saver::Saver(halfstep::Trainer& trainer, const CommonOptions& options, std::map<std::string, std::string> notes)
    : trainer_(trainer),
      options_(options),
      saves_(is_first_rank() && !options.save.empty()),
      notes_(std::move(notes)) {}

Saver::~Saver() {
  if (writing_.valid()) writing_.wait();
}

bool Saver::due(std::int64_t step) {
  if (options_.save_every.steps > 0) return step % options_.save_every.steps == 0;
  if (options_.save_every.seconds == 0) return false;
  return std::chrono::steady_clock::now() - last_ >= std::chrono::duration<double>(options_.save_every.seconds);
}

void Saver::after_step(std::int64_t step) {
  if (!saves_ || !due(step)) return;
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  settle();
  begin();
}

void Saver::save() {
  if (!saves_) return;
  settle();
  begin();
}

void Saver::begin() {
  last_ = std::chrono::steady_clock::now();
  writing_ = std::async(std::launch::async,
                        [checkpoint = trainer_.checkpoint(notes_), file = options_.save] { checkpoint.write(file); });
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
}

void warn_not_saved(const halfstep::Error& error) {
  fmt::print(stderr, "warning: {}; training goes on, and what the file held before is still there\n", error.what());
}

}  // namespace samples
