#include "step/slots.h"

#include <cstring>

#include "step/report.h"

namespace halfstep::step {

const std::byte* Slot::place(std::size_t index) const {
  return report.mapped() + index * report_place_bytes;
}

ReportHeader Slot::header() const {
  ReportHeader header;
  std::memcpy(&header, place(0), sizeof header);
  return header;
}

Slots::Slots(vk::Context& context, vk::Pipelines& pipelines, vk::Timeline& timeline, const StepProgram& program,
             std::array<const vk::Buffer*, state::buffers::table.size()> buffers, ReadReport read,
             Recording::Options options)
    : timeline_(timeline), read_(std::move(read)) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.input = vk::Buffer(context, program.slot.size, vk::Memory::upload, "step input");
    slot.report = vk::Buffer(context, program.report_bytes, vk::Memory::readback, "step report");
    buffers[state::buffers::slot] = &slot.input;
    buffers[state::buffers::report] = &slot.report;
    slot.recording = std::make_unique<Recording>(context, pipelines, program.plan, buffers, options);
  }
}

Slot& Slots::acquire() {
  Slot& slot = slots_[next_];
  if (!timeline_.finished(slot.ticket)) {
    const auto start = std::chrono::steady_clock::now();
    timeline_.wait(slot.ticket);
    waited_ += std::chrono::steady_clock::now() - start;
    ++waits_;
  }
  read(slot);
  return slot;
}

void Slots::submit() {
  Slot& slot = slots_[next_];
  slot.input.flush(0, slot.input.bytes());
  slot.ticket = timeline_.submit(slot.recording->commands());
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
  read_(slot);
}

}  // namespace halfstep::step
