#include "samples/common/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "samples/common/say.h"

namespace samples {

namespace {

using Clock = std::chrono::steady_clock;

// Uses blocks of an eighth, so that the bar grows smoothly: U+2588 is full, U+258F an eighth.
std::string bar(double share, int width) {
  const int eighths = static_cast<int>(share * width * 8);
  std::string text;
  for (int i = 0; i < width; i++) {
    const int filled = std::clamp(eighths - 8 * i, 0, 8);
    text += filled == 0 ? " " : fmt::format("\xE2\x96{}", static_cast<char>(0x90 - filled));
  }
  return text;
}

}  // namespace

Progress::Progress(std::int64_t epoch, std::int64_t epochs, std::int64_t steps, std::int64_t batch_size,
                   const char* samples, bool quiet)
    : epoch_(epoch),
      epochs_(epochs),
      steps_(steps),
      batch_size_(batch_size),
      samples_(samples),
      quiet_(quiet),
      terminal_(halfstep::is_terminal(halfstep::Stream::output)),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (quiet_ || !terminal_) return;
  say("\r{:{}}\r", "", halfstep::terminal_width(halfstep::Stream::output) - 1);
}

bool Progress::due(std::int64_t done) {
  if (quiet_) return false;
  if (terminal_) {
    const auto now = Clock::now();
    if (now - drawn_ < std::chrono::milliseconds(100)) return false;
    drawn_ = now;
    return true;
  }
  const std::int64_t tenth = 10 * done / steps_;
  if (tenth == tenth_) return false;
  tenth_ = tenth;
  return true;
}

void Progress::update(std::int64_t done, std::int64_t fresh, const halfstep::StepReport& report) {
  if (fresh <= 0 || !due(done)) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double speed = static_cast<double>(fresh * batch_size_) / std::max(seconds, 1e-9);
  const std::string head = fmt::format("epoch {}/{}", epoch_, epochs_);
  const std::string tail =
      fmt::format("{:>{}}/{}  loss {:.4f}  scale {:g}  {:.0f} {}/s", done, fmt::formatted_size("{}", steps_), steps_,
                  report.loss, report.loss_scale, speed, samples_);
  if (terminal_) {
    const int width = halfstep::terminal_width(halfstep::Stream::output) - 1;
    const int room = width - static_cast<int>(head.size() + tail.size()) - 4;
    const double share = static_cast<double>(done) / static_cast<double>(steps_);
    const std::string line = room >= 4 ? fmt::format("{} |{}| {}", head, bar(share, std::min(room, 40)), tail)
                                       : fmt::format("{} {}", head, tail).substr(0, static_cast<std::size_t>(width));
    say("\r{}", line);
  } else {
    say("{}  {}\n", head, tail);
  }
}

}  // namespace samples
