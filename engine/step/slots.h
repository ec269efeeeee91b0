#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "state/buffers.h"
#include "step/recording.h"
#include "step/report.h"
#include "step/step_program.h"
#include "vk/command/timeline.h"

namespace halfstep::step {

/// One of the places that steps take turns in: its input, its recording, its report.
struct Slot {
  vk::Buffer input;   ///< Memory::upload
  vk::Buffer report;  ///< Memory::readback
  std::unique_ptr<Recording> recording;
  std::uint64_t ticket = 0;  ///< of the last submit; 0 for none
  bool unread = false;       ///< whether its report has yet to be read

  /// Where the report has its header (0), the loss (1) and each metric.
  const std::byte* place(std::size_t index) const;
  ReportHeader header() const;
};

/// Two slots, so that the host fills one while the device works on the other. Every submit's report is read exactly
/// once, in order, when its slot is needed again or when reports are asked for.
class Slots {
 public:
  using ReadReport = std::function<void(const Slot&)>;

  /// `buffers` are those of the program, with null for the slot's own two.
  Slots(vk::Context& context, vk::Pipelines& pipelines, vk::Timeline& timeline, const StepProgram& program,
        std::array<const vk::Buffer*, state::buffers::table.size()> buffers, ReadReport read,
        Recording::Options options = {});

  /// The next slot, free to be filled. Waits for the step before last where that is still running.
  Slot& acquire();
  /// Submits the slot that acquire() gave.
  void submit();
  /// Reads the reports of steps that have finished; does not wait.
  void poll();
  /// Waits for every step submitted, and reads their reports.
  void drain();

  /// How often acquire() had to wait, and for how long in all.
  std::uint64_t waits() const { return waits_; }
  std::chrono::nanoseconds waited() const { return waited_; }
  /// The slot that was submitted last.
  const Slot& last() const { return slots_[(next_ + 1) % slots_.size()]; }
  /// The two slots, to put in what stays the same from step to step.
  std::span<Slot> all() { return slots_; }

 private:
  void read(Slot& slot);

  vk::Timeline& timeline_;
  ReadReport read_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::uint64_t waits_ = 0;
  std::chrono::nanoseconds waited_{};
};

}  // namespace halfstep::step
