#include "train/memory_need.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "state/buffers.h"
#include "train/texts.h"

namespace halfstep::train {
namespace {

constexpr std::uint64_t slots_of_a_program = 2;

std::string size_text(std::uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", number / (1 << 10))
                         : fmt::format("{:.1f} MiB", number / (1 << 20));
}

/// Those of some tensors of the arena that are alive where they take most of it.
struct Peak {
  std::vector<plan::TensorId> tensors;
  std::uint64_t bytes = 0;
};

Peak peak_of(const plan::Program& program, const std::function<bool(plan::TensorId)>& counts) {
  const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
  std::vector<std::int64_t> changes(program.dispatches.size() + 2);
  std::vector<plan::TensorId> all;
  for (plan::TensorId t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].region.buffer != plan::arena_buffer || !alive[t].used || !counts(t)) continue;
    all.push_back(t);
    changes[alive[t].first] += static_cast<std::int64_t>(program.tensors[t].bytes);
    changes[alive[t].last + 1] -= static_cast<std::int64_t>(program.tensors[t].bytes);
  }
  std::int64_t sum = 0, peak = -1;
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < changes.size(); ++i) {
    sum += changes[i];
    if (sum <= peak) continue;
    peak = sum;
    at = i;
  }
  std::erase_if(all, [&](plan::TensorId t) { return alive[t].first > at || alive[t].last < at; });
  return {std::move(all), static_cast<std::uint64_t>(peak)};
}

/// The largest tensors of the arena where most of it is in use.
std::vector<std::string> largest_tensors(const plan::Program& program) {
  constexpr std::size_t most = 3;
  std::vector<plan::TensorId> all = peak_of(program, [](plan::TensorId) { return true; }).tensors;
  std::ranges::stable_sort(all, std::ranges::greater(), [&](plan::TensorId t) { return program.tensors[t].bytes; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const plan::ProgramTensor& tensor = program.tensors[all[i]];
    texts.push_back(fmt::format("'{}' {}, {}", tensor.name, to_string(tensor.type), size_text(tensor.bytes)));
  }
  return texts;
}

/// What tensors take at once that are computed of weights and states alone: those with norms folded into them.
std::uint64_t bytes_of_weights(const plan::Program& program) {
  std::vector<bool> of_batch;
  for (const plan::ProgramTensor& tensor : program.tensors) {
    of_batch.push_back(tensor.region.buffer == state::buffers::slot);
  }
  for (const plan::Dispatch& dispatch : program.dispatches) {
    const bool reads_batch = std::ranges::any_of(dispatch.operands, [&](const plan::Operand& operand) {
      return operand.access != plan::Access::write && of_batch[operand.tensor];
    });
    if (!reads_batch) continue;
    for (const plan::Operand& operand : dispatch.operands) {
      if (operand.access != plan::Access::read) of_batch[operand.tensor] = true;
    }
  }
  return peak_of(program, [&](plan::TensorId t) { return !of_batch[t]; }).bytes;
}

}  // namespace

MemoryNeed::MemoryNeed(const state::StoreSpec& spec, const step::StepProgram& step, std::int64_t batch)
    : summary_(summarize(step.plan, spec)), batch_(batch) {
  for (const state::BufferRow& row : state::buffers::table) {
    if (row.bytes != nullptr) store_bytes_ += std::max<std::uint64_t>(row.bytes(spec), 4);
  }
  add(step);
}

void MemoryNeed::add(const step::StepProgram& program) {
  slot_bytes_ += slots_of_a_program * (program.slot.size + program.report_bytes);
  const plan::Arena& arena = program.plan.arena;
  if (arena.bytes > arena_.bytes) largest_ = largest_tensors(program.plan.program);
  arena_ = {std::max(arena_.bytes, arena.bytes), std::max(arena_.bytes_unshared, arena.bytes_unshared)};
}

void MemoryNeed::add_evaluation(const step::StepProgram& program) {
  add(program);
  of_weights_ = std::max(of_weights_, bytes_of_weights(program.plan.program));
}

MemoryParts MemoryNeed::parts() const {
  return {store_bytes_, of_weights_, arena_.bytes - of_weights_ + slot_bytes_};
}

void MemoryNeed::check(const vk::Context& context, std::uint64_t limit) const {
  const std::uint64_t all = context.heap_bytes().all;
  const bool limited = limit != 0 && limit < all;
  const std::uint64_t most = limited ? limit : all;
  if (bytes() <= most) return;
  throw TooLarge(
      fmt::format("[trainer] expected a training that takes at most {}, {}, got one of {}: {}. Hint: {}",
                  size_text(most), limited ? "the memory limit" : fmt::format("what {} has", context.info().name),
                  size_text(bytes()), text(), hint(most)),
      parts(), most);
}

std::string MemoryNeed::explain(std::string_view failure, const vk::Context& context) const {
  const vk::Context::HeapBytes heap = context.heap_bytes();
  return fmt::format("{}. The training takes {}: {}. {} has {}, of which {} are free now: {}", failure,
                     size_text(bytes()), text(), context.info().name, size_text(heap.all), size_text(heap.free),
                     hint(heap.free));
}

std::string MemoryNeed::text() const {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t bytes, std::string_view what) {
    if (bytes > 0) parts.push_back(fmt::format("{} of {}", size_text(bytes), what));
  };
  add(arena_.bytes, fmt::format("activations (the largest: {})", fmt::join(largest_, "; ")));
  add(summary_.weight_bytes, "weights");
  add(summary_.gradient_bytes, "gradients");
  add(summary_.optimizer_bytes, "optimizer state");
  add(summary_.average_bytes, "averages of weights");
  add(summary_.data_bytes, "samples");
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Activations grow as the batch does.
std::string MemoryNeed::hint(std::uint64_t limit) const {
  const MemoryParts need = parts();
  const std::uint64_t fixed = need.store + need.weights;
  const double room = limit > fixed ? static_cast<double>(limit - fixed) : 0;
  const auto fitting = static_cast<std::int64_t>(static_cast<double>(batch_) * room / static_cast<double>(need.batch));
  if (batch_ > 0 && fitting < 1) return "not even a batch of 1 fits: a smaller model, or a narrower precision";
  const std::string batch = batch_ > fitting ? fmt::format("a batch of about {} fits, not {}", fitting, batch_)
                                             : std::string("a smaller batch takes less");
  return batch + "; TrainerOptions::accumulate makes one update of several, recompute keeps fewer activations";
}

}  // namespace halfstep::train
