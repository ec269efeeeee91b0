#include "run/slots.h"

#include <halfstep/error.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "state/buffers.h"

namespace halfstep::run {

step::ReportHeader Slot::header() const {
  step::ReportHeader header;
  std::memcpy(&header, reported(0), sizeof header);
  return header;
}

void prepare(Slot& slot, Runtime& runtime, const step::StepProgram& program, std::vector<const vk::Buffer*> buffers,
             bool timestamps) {
  slot.input = vk::Buffer(runtime.context(), program.slot.size, vk::Memory::upload, "step input");
  slot.report = vk::Buffer(runtime.context(), program.report_bytes, vk::Memory::readback, "step report");
  std::memset(slot.report.mapped(), 0, slot.report.bytes());
  slot.report.flush(0, slot.report.bytes());
  buffers[state::buffers::slot] = &slot.input;
  buffers[state::buffers::report] = &slot.report;
  slot.recording = std::make_unique<step::Recording>(
      runtime.context(), runtime.pipelines, program.plan, buffers,
      step::Recording::Options{.timestamps = timestamps, .shares = !program.shared.empty()});
}

Slots::Slots(Runtime& runtime, const step::StepProgram& program, std::vector<const vk::Buffer*> buffers,
             ReadReport read, std::size_t count, bool timestamps)
    : runtime_(runtime), timeline_(runtime.timeline), read_(std::move(read)), slots_(count) {
  for (Slot& slot : slots_) prepare(slot, runtime, program, buffers, timestamps);
}

Slots::~Slots() {
  try {
    if (is_open() && host_turns_.empty()) submit();  // others over the same store find whole steps
  } catch (const std::exception&) {                  // a lost device has no weights to find
  }
  if (runtime_.open == this) runtime_.open = nullptr;
  timeline_.wait_for_all();
}

Slot& Slots::acquire(std::uint64_t before) {
  if (is_open()) submit();  // which an error has left
  Slot& slot = slots_[next_];
  const std::uint64_t ticket = std::max(slot.ticket, before);
  if (!timeline_.finished(ticket)) {
    const auto start = std::chrono::steady_clock::now();
    timeline_.wait(ticket);
    waits_.time += std::chrono::steady_clock::now() - start;
    ++waits_.for_slot;
  }
  read(slot);
  return slot;
}

void Slots::submit() {
  if (!is_open()) slots_[next_].recording->limit(std::numeric_limits<double>::infinity());
  const std::vector<std::size_t> awaited =
      host_turns_.empty() ? std::vector<std::size_t>{} : slots_[next_].recording->awaited();
  for (; turns_.taken < host_turns_.size(); ++turns_.taken) {
    const HostTurn& turn = host_turns_[turns_.taken];
    while (turns_.tickets.size() < turn.awaited) {
      submit_to(awaited[turns_.awaited]);
      ++turns_.awaited;
      turns_.tickets.push_back(last_ticket_);
    }
    if (std::exchange(turns_.is_host, true)) {
      fail("exchange", "expected a step that ranks have exchanged all of, got one that an error ended in an exchange",
           "start all ranks again from a checkpoint");
    }
    take_turn(turn);
    turns_.is_host = false;
    turns_.tickets.clear();
  }
  submit_to(slots_[next_].recording->pieces());
  turns_ = {};
}

void Slots::take_turn(const HostTurn& turn) {
  const std::uint64_t waits = timeline_.waits();
  const auto start = std::chrono::steady_clock::now();
  turn.take(slots_[next_], turns_.tickets);
  waits_.time += std::chrono::steady_clock::now() - start;
  waits_.in_turns += timeline_.waits() - waits;
}

bool Slots::submit_for(double seconds) {
  step::Recording& recording = *slots_[next_].recording;
  if (!is_open()) recording.limit(seconds);
  submit_to(recording.end_within(begun_, seconds));
  return !is_open();
}

void Slots::submit_to(std::size_t end) {
  if (runtime_.open != nullptr && runtime_.open != this) runtime_.open->submit();
  Slot& slot = slots_[next_];
  if (!is_open()) slot.input.flush(0, slot.input.bytes());
  try {
    slot.ticket = last_ticket_ = slot.recording->submit(timeline_, begun_, end);
  } catch (...) {
    if (is_open()) runtime_.open = this;
    throw;
  }
  const bool all = end == slot.recording->pieces();
  if (all) begun_ = 0;
  runtime_.open = all ? nullptr : this;
  if (!all) return;
  slot.unread = true;
  next_ = (next_ + 1) % slots_.size();
}

void Slots::poll() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[(next_ + i) % slots_.size()];
    if (timeline_.finished(slot.ticket)) read(slot);
  }
}

void Slots::drain() {
  if (is_open()) submit();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[(next_ + i) % slots_.size()];
    timeline_.wait(slot.ticket);
    read(slot);
  }
}

void Slots::read(Slot& slot) {
  if (!slot.unread) return;
  slot.report.invalidate(0, slot.report.bytes());
  slot.recording->finished();
  slot.unread = false;  // only now: what throws before is tried again
  read_(slot);
}

}  // namespace halfstep::run
