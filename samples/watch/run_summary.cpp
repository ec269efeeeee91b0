#include "samples/watch/run_summary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "samples/watch/fields.h"

namespace samples {
namespace {

std::string count_text(double count) {
  if (count >= 1e9) return fmt::format("{:.3g} G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.3g} M", count / 1e6);
  return count >= 1e4 ? fmt::format("{:.3g} k", count / 1e3) : fmt::format("{:.0f}", count);
}

}  // namespace

std::string byte_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.3g} KB", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("{:.3g} MB", bytes / 1e6) : fmt::format("{:.3g} GB", bytes / 1e9);
}

std::string time_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", 1000 * seconds);
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e12));
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

void RunSummary::add(const Record& record) {
  const std::string kind = text(record, "kind");
  if (kind == "start") {
    start_ = record;
    state_ = "running, or killed";
    earlier_seconds_ += seconds_;
    seconds_ = 0;
    decisions_.clear();
  }
  if (record.contains("seconds")) seconds_ = std::max(seconds_, amount(record, "seconds"));
  if (kind == "decision") decisions_.push_back(text(record, "text"));
  if (kind == "evaluation") evaluations_.push_back(record);
  if (kind == "end") state_ = record.value("complete", Record(false)) == true ? "finished" : "stopped";
  if (kind != "step") return;
  step_ = amount(record, "step");
  skipped_ = amount(record, "skipped");
  loss_ = number(record, "loss");
}

std::vector<std::pair<std::string, std::string>> RunSummary::figures() const {
  std::vector<std::pair<std::string, std::string>> figures;
  const std::optional<double> trained =
      evaluations_.empty() ? loss_ : std::optional(number(evaluations_.back(), "train_loss"));
  if (trained) {
    figures.emplace_back("training loss", std::isfinite(*trained) ? fmt::format("{:.4g}", *trained) : not_finite);
  }
  const Record& last = evaluations_.empty() ? start_ : evaluations_.back();
  const Record& scores = inside(last, "scores");
  for (const auto& [name, value] : scores.items()) {
    const double score = number(scores, name);
    if (scores.is_object() && std::isfinite(score)) {
      figures.emplace_back(name == "test_accuracy" ? "test accuracy" : name, name == "test_accuracy"
                                                                                 ? fmt::format("{:.2f}%", 100 * score)
                                                                                 : fmt::format("{:.4g}", score));
    }
  }
  const double steps = amount(start_, "steps");
  figures.emplace_back("steps", steps > step_ ? fmt::format("{:.0f} of {:.0f}", step_, steps) : count_text(step_));
  figures.emplace_back("skipped steps", count_text(skipped_));
  figures.emplace_back("time", time_text(earlier_seconds_ + seconds_));
  const double speed = number(last, "samples_per_second");
  if (std::isfinite(speed)) figures.emplace_back("samples/s", count_text(speed));
  const Record& plan = inside(start_, "plan");
  figures.emplace_back("parameters", count_text(amount(plan, "parameters")));
  figures.emplace_back("memory", byte_text(amount(plan, "peak_bytes")));
  return figures;
}

}  // namespace samples
