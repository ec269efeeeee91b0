#include "plan/pieces.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/lowering.h"

namespace halfstep::plan {
namespace {

/// A slow phone's; a faster device is found out by measuring.
constexpr double assumed_flops_per_second = 20e9;
constexpr double assumed_bytes_per_second = 4e9;
constexpr double assumed_seconds_per_dispatch = 20e-6;

/// The weight of the newest measurement beside those before it.
constexpr double newest = 0.25;

/// A piece is believed to have taken so many times what was expected of it, and no more at once: where a clock was
/// reset, or a process or a machine stood still, the measured time may be hours.
constexpr double most_times = 100;

/// So many pieces at most are cut, about, by times that are only predicted: of a large model the pieces of a slow phone
/// would be hundreds of thousands, each with command buffers of its own.
constexpr double most_predicted = 4096;
/// Likewise by measured times: a step of seconds has tens of thousands where it runs within frames, and would have
/// millions by a budget of microseconds.
constexpr double most_measured = 16384;

/// Pieces are cut to this part of the limit, since measured times vary.
constexpr double filled = 0.5;

double predicted_seconds(const Program& program, const Dispatch& dispatch) {
  const double compute = dispatch.flops / assumed_flops_per_second;
  const double memory = static_cast<double>(bytes_touched(program, dispatch)) / assumed_bytes_per_second;
  return std::max(compute, memory) + assumed_seconds_per_dispatch;
}

/// The groups that may be submitted apart. The library's kernels know a group by linear_group() alone, in
/// common/indexing.glsl; an application's own kernels may know it by its coordinates.
std::uint64_t separable_groups(const Dispatch& dispatch, const Target& target) {
  const std::size_t pushed = pushed_bytes(dispatch);
  if (dispatch.spirv || pushed == 0 || pushed + first_group_bytes > target.max_push_bytes) return 1;
  return std::uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
}

}  // namespace

std::array<std::uint32_t, 3> groups_of(const Slice& slice, const Dispatch& dispatch) {
  if (slice.width == 0) return dispatch.groups;
  const std::uint64_t all = std::uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
  const std::uint64_t left = all - std::uint64_t{slice.row} * slice.width;
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(slice.width, left)), 1, 1};
}

Pieces::Pieces(const Program& program, const Target& target)
    : compiles_first_(target.cpu), longest_(target.submit_seconds), limit_(longest_), max_width_(target.max_groups[0]) {
  for (const Dispatch& dispatch : program.dispatches) {
    dispatches_.push_back({separable_groups(dispatch, target), dispatch.awaited, predicted_seconds(program, dispatch)});
  }
  cut();
}

/// What pieces may take now.
double Pieces::allowed() const {
  double all = 0;
  for (const Dispatched& dispatch : dispatches_) all += dispatch.seconds;
  const double most = measured_ ? most_measured : most_predicted;
  return std::min(longest_, std::max(limit_, all / (filled * most)));
}

/// How many submits a dispatch is spread over.
std::uint32_t Pieces::rows_of(std::uint32_t dispatch, double limit) const {
  const Dispatched& of = dispatches_[dispatch];
  if (of.seconds <= limit) return 1;
  const double wanted = std::ceil(of.seconds / (filled * limit));
  const auto least = static_cast<double>((of.groups + max_width_ - 1) / max_width_);
  return static_cast<std::uint32_t>(std::min(std::max(wanted, least), static_cast<double>(of.groups)));
}

double Pieces::seconds_of(const Slice& slice) const {
  const Dispatched& of = dispatches_[slice.dispatch];
  if (slice.width == 0) return of.seconds;
  const std::uint64_t first = std::uint64_t{slice.row} * slice.width;
  const std::uint64_t count = std::min<std::uint64_t>(slice.width, of.groups - first);
  return of.seconds * static_cast<double>(count) / static_cast<double>(of.groups);
}

double Pieces::seconds(std::size_t piece) const {
  double sum = 0;
  for (const Slice& slice : pieces_[piece]) sum += seconds_of(slice);
  return sum;
}

std::vector<std::size_t> Pieces::awaited() const {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::uint32_t last = pieces_[i].empty() ? 0 : pieces_[i].back().dispatch;
    const bool whole = i + 1 == pieces_.size() || pieces_[i + 1].front().dispatch != last;
    if (!pieces_[i].empty() && dispatches_[last].awaited && whole) ends.push_back(i + 1);
  }
  return ends;
}

bool Pieces::limit(double seconds) {
  const double wanted = std::min(seconds, longest_);
  if (wanted == limit_) return false;
  limit_ = wanted;
  const std::vector<Piece> before = std::move(pieces_);
  cut();
  compiled_ = compiled_ && pieces_ == before;
  return pieces_ != before;
}

void Pieces::cut() {
  pieces_.assign(1, {});
  const double limit = allowed();
  double filling = 0;
  const auto append = [&](const Slice& slice) {
    const double seconds = seconds_of(slice);
    const bool ended = !pieces_.back().empty() && dispatches_[pieces_.back().back().dispatch].awaited &&
                       pieces_.back().back().dispatch != slice.dispatch;
    if (ended || (!pieces_.back().empty() && filling + seconds > filled * limit)) {
      pieces_.emplace_back();
      filling = 0;
    }
    pieces_.back().push_back(slice);
    filling += seconds;
  };
  for (std::uint32_t i = 0; i < dispatches_.size(); ++i) {
    const std::uint32_t rows = rows_of(i, limit);
    if (rows <= 1) {
      append({.dispatch = i});
      continue;
    }
    const std::uint64_t width = (dispatches_[i].groups + rows - 1) / rows;
    for (std::uint32_t row = 0; row * width < dispatches_[i].groups; ++row) {
      append({.dispatch = i, .width = static_cast<std::uint32_t>(width), .row = row});
    }
  }
}

bool Pieces::measured(std::span<const double> microseconds) {
  if (compiles_first_ && !std::exchange(compiled_, true)) return false;
  std::vector<double> found(dispatches_.size(), 0);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const double expected = seconds(i);
    const double taken = microseconds[i] > 0 ? microseconds[i] * 1e-6 : expected;
    const double believed = std::min(taken, most_times * expected);
    for (const Slice& slice : pieces_[i]) found[slice.dispatch] += seconds_of(slice) * believed / expected;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    double& kept = dispatches_[i].seconds;
    kept += (measured_ ? newest : 1) * (found[i] - kept);
  }
  measured_ = true;
  const double most = allowed();
  bool too_long = false;
  for (std::size_t i = 0; i < pieces_.size(); ++i) too_long = too_long || seconds(i) > most;
  const std::vector<Piece> before = std::move(pieces_);
  cut();
  if (pieces_ != before && (too_long || 2 * pieces_.size() <= before.size())) {
    compiled_ = false;
    return true;
  }
  pieces_ = before;
  return false;
}

}  // namespace halfstep::plan
