#include "train/reports.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfstep::train {

void Reports::read(const run::Program& program, const run::Slot& slot) {
  const step::ReportHeader header = slot.header();
  StepReport report;
  report.step = header.attempted[0] | static_cast<std::uint64_t>(header.attempted[1]) << 32;
  report.applied = header.applied;
  report.skipped = header.skipped;
  report.tensor_updates_skipped = header.tensor_updates_skipped;
  report.overflowed = header.overflow != 0;
  report.loss_scale = header.loss_scale;
  report.rate = header.rate;
  report.clip = header.clip;
  if (has_norm_) report.gradient_norm = header.gradient_norm;
  report.loss = program.mean_output(slot, 0);
  ++totals_.steps;
  if (std::isfinite(report.loss)) {
    ++finite_losses_;
    totals_.mean_loss += static_cast<double>(report.loss);
  }
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const float value = program.mean_output(slot, 1 + i);
    report.metrics[metrics_[i]] = value;
    totals_.mean_metrics[metrics_[i]] += static_cast<double>(value);
  }
  const bool at_floor = scale_.kind == LossScale::Kind::dynamic && report.loss_scale <= scale_.floor;
  if (at_floor && report.overflowed) {
    // Of several programs, reports of finished steps may be read in another order.
    overflowed_at_floor_ = overflowed_at_floor_ == 0 ? report.step : std::min(overflowed_at_floor_, report.step);
  }
  if (kept_) kept_->push_back(report);
  // Reports of recorded steps may be read after those of later ones.
  if (report.step >= latest_.step) latest_ = std::move(report);
}

std::vector<StepReport> Reports::take() {
  std::vector<StepReport> reports;
  if (kept_) reports = std::move(*kept_);
  kept_.emplace();
  std::ranges::sort(reports, {}, &StepReport::step);
  return reports;
}

StepTotals Reports::take_totals() {
  StepTotals totals = std::exchange(totals_, {});
  const std::uint64_t finite = std::exchange(finite_losses_, 0);
  totals.mean_loss = finite > 0 ? totals.mean_loss / static_cast<double>(finite) : std::nan("");
  for (auto& [name, value] : totals.mean_metrics) value /= static_cast<double>(totals.steps);
  return totals;
}

}  // namespace halfstep::train
