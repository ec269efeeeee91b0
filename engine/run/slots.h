#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "run/runtime.h"
#include "step/recording.h"
#include "step/report.h"
#include "step/step_program.h"
#include "vk/command/timeline.h"

namespace halfstep::run {

/// One of the places that runs of a program take turns in: its input, its recording, its report.
struct Slot {
  vk::Buffer input;   ///< Memory::upload
  vk::Buffer report;  ///< Memory::readback
  std::unique_ptr<step::Recording> recording;
  std::uint64_t ticket = 0;  ///< of the last submit; 0 for none
  bool unread = false;       ///< whether its report has yet to be read

  std::uint64_t report_from = 0;  ///< where in `report` the one to read begins

  const std::byte* reported(std::uint64_t place) const { return report.mapped() + report_from + place; }
  /// What a training step leaves at the start of its report.
  step::ReportHeader header() const;
};

/// Gives a slot, which must stay where it is, its buffers and a recording of the program. `buffers` are those of the
/// program, with null for the slot's own two.
void prepare(Slot& slot, Runtime& runtime, const step::StepProgram& program, std::vector<const vk::Buffer*> buffers,
             bool timestamps);

/// A few slots, so that the host fills one while the device works on another. Every submit's report is read exactly
/// once, in order, when its slot is needed again or when reports are asked for.
class Slots {
 public:
  using ReadReport = std::function<void(const Slot&)>;
  /// What the host does in the middle of a run, before anything that follows is submitted.
  struct HostTurn {
    std::size_t awaited = 0;  ///< dispatches that are awaited, the next ones of the run
    /// Called when they have been submitted: each ends the submit of a ticket.
    std::function<void(Slot&, std::span<const std::uint64_t> tickets)> take{};
  };

  /// `buffers` are those of the program, with null for the slot's own two.
  Slots(Runtime& runtime, const step::StepProgram& program, std::vector<const vk::Buffer*> buffers, ReadReport read,
        std::size_t count, bool timestamps);
  /// Ends an open run, unless ranks exchange in it, and waits for what is under way.
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  /// The next slot, free to be filled. Waits for the run that was submitted in it last, where that is still running,
  /// and for the submit `before`, of any program. Ends a run that an error has left open.
  Slot& acquire(std::uint64_t before = 0);
  /// Submits the slot that acquire() gave, or what submit_for() or an error has left of it. Where this throws after a
  /// part of the run was submitted, the run is open, as after submit_for(): what has run must not run again. Throws
  /// Error from then on if that was in a turn of the host's.
  void submit();
  /// Submits as much of it as takes the device `seconds`, by measured times, and one piece at least. Returns whether
  /// that was all. Until then the run is open: whoever submits a run of another program on the runtime submits the rest
  /// first. A run that submit() begins is not cut to this.
  bool submit_for(double seconds);
  bool is_open() const { return begun_ > 0; }
  /// Of programs with dispatches that are awaited, in their order; submit() takes them.
  void set_host_turns(std::vector<HostTurn> turns) { host_turns_ = std::move(turns); }
  /// Reads the reports of runs that have finished; does not wait.
  void poll();
  /// Waits for every run submitted, and reads their reports.
  void drain();

  std::size_t count() const { return slots_.size(); }
  /// How often the host waited for the device, and for how long, with all that it did in turns of its own.
  struct Waits {
    std::uint64_t for_slot = 0;  ///< in acquire()
    std::uint64_t in_turns = 0;
    std::chrono::nanoseconds time{};
  };
  const Waits& waits() const { return waits_; }
  /// The ticket of what was submitted last, 0 for nothing.
  std::uint64_t last_ticket() const { return last_ticket_; }
  /// The slot that was submitted last.
  const Slot& last() const { return slots_[before_next()]; }
  /// The slot of the open run, or else the one that was submitted last.
  Slot& newest() { return slots_[is_open() ? next_ : before_next()]; }

 private:
  /// How far the open run has come with what is awaited and with the host's turns.
  struct Turns {
    std::size_t taken = 0;                 ///< turns
    std::size_t awaited = 0;               ///< dispatches that were submitted
    std::vector<std::uint64_t> tickets{};  ///< of those among them that are for the next turn
    bool is_host = false;                  ///< the next turn has begun
  };

  std::size_t before_next() const { return (next_ + slots_.size() - 1) % slots_.size(); }
  void submit_to(std::size_t end);
  void take_turn(const HostTurn& turn);
  void read(Slot& slot);

  Runtime& runtime_;
  vk::Timeline& timeline_;
  ReadReport read_;
  std::vector<HostTurn> host_turns_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::size_t begun_ = 0;  ///< pieces of the open run that were submitted; 0 if there is none
  Turns turns_;
  std::uint64_t last_ticket_ = 0;
  Waits waits_;
};

}  // namespace halfstep::run
