#include "run/program.h"

#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>

#include "plan/host_tensor.h"
#include "vk/command/transfer.h"

namespace halfstep::run {
namespace {

namespace buffers = state::buffers;

template <typename Element>
void copy_into(const vk::Buffer& buffer, std::uint64_t offset, std::span<const Element> values) {
  std::memcpy(buffer.mapped() + offset, values.data(), values.size_bytes());
}

std::shared_ptr<const vk::Buffer> arena_for(Runtime& runtime, std::uint64_t bytes, bool own) {
  if (!own) return runtime.shared_arena(bytes);
  return std::make_shared<const vk::Buffer>(vk::Buffer::in_parts(runtime.context(), bytes, "a program's own arena"));
}

std::vector<vk::Buffer> shared_buffers(vk::Context& context, const step::StepProgram& lowered) {
  std::vector<vk::Buffer> result;
  for (std::size_t i = 0; i < lowered.shared.size(); ++i) {
    result.emplace_back(context, lowered.shared[i], lowered.plan.program.buffers[buffers::table.size() + i]);
  }
  return result;
}

}  // namespace

Program::Program(Workspace workspace, step::StepProgram lowered, ReadReport read, Options options)
    : workspace_(std::move(workspace)),
      lowered_(std::move(lowered)),
      arena_(arena_for(*workspace_.runtime, lowered_.plan.arena.bytes, options.own_arena)),
      shared_(shared_buffers(workspace_.runtime->context(), lowered_)),
      read_(std::move(read)),
      slots_(
          *workspace_.runtime, lowered_, buffers(*arena_), [this](const Slot& slot) { read_(*this, slot); },
          options.slots, options.timestamps) {}

/// As a recording takes them, with null for what each slot has of its own.
std::vector<const vk::Buffer*> Program::buffers(const vk::Buffer& arena) const {
  std::vector<const vk::Buffer*> result;
  for (plan::BufferId id = 0; id < buffers::table.size(); ++id) {
    result.push_back(buffers::table[id].bytes != nullptr ? &workspace_.store->buffer(id) : nullptr);
  }
  result[buffers::arena] = &arena;
  if (workspace_.caches) result[buffers::caches] = &workspace_.caches->buffer();
  for (const vk::Buffer& shared : shared_) result.push_back(&shared);
  return result;
}

void Program::record(VkCommandBuffer commands, bool own_arena) {
  Runtime& runtime = *workspace_.runtime;
  if (!recorded_) {
    recorded_arena_ = own_arena ? arena_for(runtime, lowered_.plan.arena.bytes, true) : arena_;
    auto slot = std::make_unique<Slot>();
    prepare(*slot, runtime, lowered_, buffers(*recorded_arena_), false);
    recorded_ = std::move(slot);
  }
  recorded_->recording->record_into(commands);
}

bool Program::read_recorded() {
  if (!recorded_) fail("program", "expected a run that was recorded, got none");
  recorded_->report.invalidate(0, recorded_->report.bytes());
  const std::uint32_t run = recorded_runs_ + 1;
  // How many runs after the one that is wanted the kept report of a run, or of a later one in its place, is of.
  const auto runs_after = [&](std::uint32_t of) {
    recorded_->report_from = lowered_.kept_from * (1 + (of - 1) % step::kept_reports);
    return static_cast<std::int32_t>(recorded_->header().runs - run);
  };
  // The report before it is written over first, while which this one is whole.
  const bool is_whole = runs_after(run - 1) <= 0;
  const std::int32_t after = runs_after(run);
  if (after < 0) {
    fail("program", "expected a recorded run that was executed, got none",
         "submit the command buffer, and wait for its end");
  }
  recorded_runs_ = run;
  if (after > 0 || !is_whole) return false;
  read_(*this, *recorded_);
  return true;
}

std::uint64_t Program::slot_bytes() const {
  return slots_.count() * (lowered_.slot.size + lowered_.report_bytes);
}

void Program::check_names(std::string_view who, const std::map<std::string, Values>& inputs) const {
  for (const auto& [name, values] : inputs) {
    if (std::ranges::find(lowered_.slot.inputs, name, &step::FedInput::name) == lowered_.slot.inputs.end()) {
      fail(who, fmt::format("expected values for the graph's inputs only, got some for '{}'", name));
    }
  }
}

void Program::fill(Slot& slot, std::string_view who, const std::map<std::string, Values>& inputs) const {
  for (const step::FedInput& input : lowered_.slot.inputs) {
    const auto found = inputs.find(input.name);
    if (found == inputs.end()) fail(who, fmt::format("expected values for input '{}', got none", input.name));
    const Values& values = found->second;
    const auto wanted = static_cast<std::size_t>(elements(input.type.shape));
    const std::size_t times = input.places.size();
    const std::size_t given = std::visit([](const auto& span) { return span.size(); }, values);
    const bool words = std::holds_alternative<std::span<const std::uint32_t>>(values);
    if (given != wanted * times || words != (input.type.dtype == DType::u32)) {
      fail(who, fmt::format("expected {}{} values of {} for input '{}', got {} of {}",
                            times > 1 ? fmt::format("{} times ", times) : "", wanted, to_string(input.type), input.name,
                            given, words ? "u32" : "f32"));
    }
    for (std::size_t i = 0; i < times; ++i) {
      const std::vector<std::byte> memory = std::visit(
          [&](const auto& span) { return plan::to_memory(input.type, span.subspan(i * wanted, wanted)); }, values);
      copy_into<std::byte>(slot.input, input.places[i], memory);
    }
  }
}

/// The samples of a gathered batch are counted from 0.
void Program::fill(Slot& slot, const data::HostBatch& batch) const {
  std::vector<std::uint32_t> indices(lowered_.slot.indices.bytes / sizeof(std::uint32_t));
  std::iota(indices.begin(), indices.end(), 0U);
  fill(slot, indices);
  for (std::size_t i = 0; i < batch.fields.size(); ++i) {
    copy_into<std::byte>(slot.input, lowered_.slot.fields[i].offset, batch.fields[i]);
  }
}

void Program::fill(Slot& slot, std::span<const std::uint32_t> indices) const {
  copy_into(slot.input, lowered_.slot.indices.offset, indices);
}

std::vector<float> Program::output(const Slot& slot, std::size_t index, std::uint32_t micro_batch) const {
  const step::ReportedValue& value = lowered_.reported[index];
  const std::byte* place = slot.reported(value.places[micro_batch]);
  return plan::floats_from_memory(value.type, {place, plan::byte_size(value.type)});
}

float Program::mean_output(const Slot& slot, std::size_t index) const {
  const step::ReportedValue& value = lowered_.reported[index];
  const auto number = [&](const step::ReportedValue& of, std::size_t micro_batch) {
    float found;
    std::memcpy(&found, slot.reported(of.places[micro_batch]), sizeof found);
    return static_cast<double>(found);
  };
  double sum = 0;
  double weights = 0;
  for (std::size_t i = 0; i < value.places.size(); ++i) {
    const double weight = value.of_counted ? number(lowered_.reported.back(), i) : 1;
    if (weight > 0) sum += weight * number(value, i);
    weights += weight;
  }
  return static_cast<float>(weights > 0 ? sum / weights : 0);
}

std::vector<float> Program::read(const Slot& slot, plan::TensorId tensor, const TensorType& type) const {
  const plan::ProgramTensor& memory = plan().program.tensors[tensor];
  const auto [id, offset] = memory.region;
  if (id == buffers::slot || id == buffers::report) {
    const std::byte* place = id == buffers::slot ? slot.input.mapped() + offset : slot.reported(offset);
    return plan::floats_from_memory(type, {place, memory.bytes});
  }
  std::vector<std::byte> bytes(memory.bytes);
  const vk::Buffer& buffer = id == buffers::arena ? *arena_ : workspace_.store->buffer(id);
  vk::download(workspace_.runtime->context(), buffer, offset, bytes);
  std::vector<float> values = plan::floats_from_memory(type, bytes);
  const state::ParameterStore& store = *workspace_.store;
  if (id == buffers::gradients && store.spec().weights.scaled) {
    const std::uint64_t element = offset / static_cast<std::uint64_t>(halfstep::bytes(type.dtype));
    const float unscale =
        state::gradient_scales::unscale(workspace_.runtime->context(), store.buffer(buffers::gradient_scales), element);
    for (float& value : values) value *= unscale;
  }
  return values;
}

}  // namespace halfstep::run
