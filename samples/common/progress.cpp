#include "samples/common/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samples/common/say.h"

namespace samples {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view erased = "\x1b[K";  ///< the rest of the line

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

/// "3:05", or "1:02:03" of an hour and more.
std::string clock_text(double seconds) {
  constexpr double most = 1e8;
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, most));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// Whether a line can be drawn over another: on a terminal. A CI's log is none, even where it says so, and the
/// terminals that Open MPI gives its ranks say nothing about where it prints to.
bool redraws() {
  using halfstep::environment;
  return halfstep::is_terminal(halfstep::Stream::output) && environment("TERM").value_or("dumb") != "dumb" &&
         !environment("CI") && !environment("OMPI_COMM_WORLD_SIZE");
}

/// The parts of a line, as many as `width` columns have room for. What matters less is left out first.
std::string fitted(const std::string& head, double share, const std::string& count, std::string_view loss,
                   std::string_view details, const std::string& left, std::size_t width) {
  constexpr std::size_t least_bar = 8;
  constexpr std::size_t most_bar = 40;
  constexpr std::size_t frame = 4;  // "| | " and the blank before
  const std::vector<std::string> tails{fmt::format("{}{}{}{}", count, loss, details, left),
                                       fmt::format("{}{}{}", count, loss, left), count + left};
  for (const std::string& tail : tails) {
    const std::size_t used = head.size() + tail.size() + frame;
    if (used + least_bar > width) continue;
    return fmt::format("{} |{}| {}", head, bar(share, static_cast<int>(std::min(width - used, most_bar))), tail);
  }
  for (const std::string& line :
       {fmt::format("{} {}", head, count + left), count + left, count, fmt::format("{:.0f}%", 100 * share)}) {
    if (line.size() <= width) return line;
  }
  return {};
}

}  // namespace

Progress::Progress(std::string head, std::int64_t steps, std::int64_t steps_after, std::int64_t batch_size,
                   const char* samples, bool quiet)
    : head_(std::move(head)),
      steps_(steps),
      steps_after_(steps_after),
      batch_size_(batch_size),
      samples_(samples),
      quiet_(quiet),
      terminal_(redraws()),
      start_(Clock::now()) {}

void Progress::clear() {
  if (std::exchange(drawn_, {}) != Clock::time_point()) say("\r{}", erased);
  cleared_ = Clock::now();
}

void Progress::go_on() {
  if (cleared_) start_ += Clock::now() - *cleared_;
  cleared_.reset();
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
  const std::string count = fmt::format("{:>{}}/{}", done, fmt::formatted_size("{}", steps_), steps_);
  const std::string loss = fmt::format("  loss {:.4f}", report.loss);
  const std::string details = fmt::format("  scale {:.9g}  {:.0f} {}/s", report.loss_scale, speed, samples_);
  const std::int64_t steps_left = steps_after_ + steps_ - done;
  const std::string left =
      fmt::format("  {} left", clock_text(static_cast<double>(steps_left * batch_size_) / std::max(speed, 1e-9)));
  if (terminal_) {
    // Asked each time: it may have changed. The last column stays free, as some terminals begin a new line after it.
    const int width = halfstep::terminal_width(halfstep::Stream::output) - 1;
    const double share = static_cast<double>(done) / static_cast<double>(steps_);
    say("\r{}{}", fitted(head_, share, count, loss, details, left, static_cast<std::size_t>(std::max(width, 0))),
        erased);
  } else {
    say("{}  {}{}{}{}\n", head_, count, loss, details, left);
  }
}

}  // namespace samples
