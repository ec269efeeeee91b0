#include "run/slots.h"

#include <halfstep/error.h>

#include <algorithm>
#include <cstring>

#include "state/buffers.h"

namespace halfstep::run {

step::ReportHeader Slot::header() const {
  step::ReportHeader header;
  std::memcpy(&header, report.mapped(), sizeof header);
  return header;
}

Slots::Slots(Runtime& runtime, const step::StepProgram& program, std::vector<const vk::Buffer*> buffers,
             ReadReport read, std::size_t count, bool timestamps)
    : timeline_(runtime.timeline), read_(std::move(read)), slots_(count) {
  for (Slot& slot : slots_) {
    slot.input = vk::Buffer(runtime.context(), program.slot.size, vk::Memory::upload, "step input");
    slot.report = vk::Buffer(runtime.context(), program.report_bytes, vk::Memory::readback, "step report");
    buffers[state::buffers::slot] = &slot.input;
    buffers[state::buffers::report] = &slot.report;
    slot.recording = std::make_unique<step::Recording>(runtime.context(), runtime.pipelines, program.plan, buffers,
                                                       step::Recording::Options{.timestamps = timestamps});
  }
}

Slots::~Slots() {
  try {
    for (const Slot& slot : slots_) timeline_.wait(slot.ticket);
  } catch (const Error&) {
    // Nothing more can be done: a lost device has finished too.
  }
}

Slot& Slots::acquire(std::uint64_t before) {
  Slot& slot = slots_[next_];
  const std::uint64_t ticket = std::max(slot.ticket, before);
  if (!timeline_.finished(ticket)) {
    const auto start = std::chrono::steady_clock::now();
    timeline_.wait(ticket);
    waited_ += std::chrono::steady_clock::now() - start;
    ++waits_;
  }
  read(slot);
  return slot;
}

void Slots::submit() {
  Slot& slot = slots_[next_];
  slot.input.flush(0, slot.input.bytes());
  slot.ticket = slot.recording->submit(timeline_);
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
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[(next_ + i) % slots_.size()];
    timeline_.wait(slot.ticket);
    read(slot);
  }
}

void Slots::read(Slot& slot) {
  if (!slot.unread) return;
  slot.report.invalidate(0, slot.report.bytes());
  slot.unread = false;
  slot.recording->finished();
  read_(slot);
}

}  // namespace halfstep::run
