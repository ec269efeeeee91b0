#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/program.h"
#include "plan/target.h"

namespace halfstep::plan {

/// Workgroups of one dispatch that are submitted together: all of them, or one row of a grid that they are folded into.
struct Slice {
  std::uint32_t dispatch = 0;
  std::uint32_t width = 0;  ///< groups in a row; 0: the slice is the whole dispatch
  std::uint32_t row = 0;

  friend bool operator==(const Slice&, const Slice&) = default;
};

/// The workgroups of a slice of `dispatch`, counted from number row * width on. Of the last row they are only those
/// that are left: some kernels must not have more.
std::array<std::uint32_t, 3> groups_of(const Slice& slice, const Dispatch& dispatch);

/// Slices that are submitted together, in order.
using Piece = std::vector<Slice>;

/// A program cut into pieces so that no submit takes the device longer than Target::submit_seconds: Windows and phones
/// reset a device whose submit takes a second or two, and a screen that the same device draws stands still meanwhile.
/// The cut follows predicted times first, those of a slow device, and measured ones later. It changes no result.
class Pieces {
 public:
  Pieces(const Program& program, const Target& target);

  const std::vector<Piece>& list() const { return pieces_; }
  /// For each dispatch that the host awaits: how many pieces of list() there are up to its own, which it is last of.
  std::vector<std::size_t> awaited() const;
  /// What a piece of list() is expected to take.
  double seconds(std::size_t piece) const;

  /// Cuts pieces that take no longer than `seconds` each, and than Target::submit_seconds. Returns whether that changed
  /// them. They may take longer than `seconds` where there would be more than some 16,000, or before anything was
  /// measured more than some 4,000.
  bool limit(double seconds);

  /// Takes note of how long each piece of list() took: the first time as it is, later as a moving average. Returns
  /// whether they were cut anew: because one takes too long, or half as many would do. A software driver compiles a
  /// kernel when it first runs it, so there the first time after each cut is passed over. So is a time of 0: some
  /// clocks stand still within a submit, such as MoltenVK's where Metal samples no counters. A time a hundred times as
  /// long as expected, or longer, is taken as that.
  bool measured(std::span<const double> microseconds);

 private:
  double allowed() const;
  std::uint32_t rows_of(std::uint32_t dispatch, double limit) const;
  double seconds_of(const Slice& slice) const;
  void cut();

  /// The workgroups of a dispatch, where they may be submitted apart; else 1.
  struct Dispatched {
    std::uint64_t groups;
    bool awaited;    ///< see Dispatch
    double seconds;  ///< of all groups: predicted, or as last measured
  };

  std::vector<Dispatched> dispatches_;
  bool measured_ = false;
  bool compiles_first_;      ///< a kernel is compiled when it first runs
  bool compiled_ = false;    ///< all of list() have run
  double longest_;           ///< Target::submit_seconds
  double limit_;             ///< seconds of a piece
  std::uint32_t max_width_;  ///< groups in a row, the device's limit
  std::vector<Piece> pieces_;
};

}  // namespace halfstep::plan
