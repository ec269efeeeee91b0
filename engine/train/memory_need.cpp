#include "train/memory_need.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/memory_plan.h"
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

/// The largest tensors of the arena where most of it is in use.
std::vector<std::string> largest_tensors(const plan::Program& program) {
  constexpr std::size_t most = 3;
  const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
  std::vector<std::int64_t> changes(program.dispatches.size() + 2);
  std::vector<plan::TensorId> all;
  for (plan::TensorId t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].region.buffer != plan::arena_buffer || !alive[t].used) continue;
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
  std::ranges::stable_sort(all, std::ranges::greater(), [&](plan::TensorId t) { return program.tensors[t].bytes; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const plan::ProgramTensor& tensor = program.tensors[all[i]];
    texts.push_back(fmt::format("'{}' {}, {}", tensor.name, to_string(tensor.type), size_text(tensor.bytes)));
  }
  return texts;
}

}  // namespace

MemoryNeed::MemoryNeed(const state::StoreSpec& spec, const step::StepProgram& step, std::int64_t batch)
    : summary_(summarize(step.plan, spec)), batch_(batch), largest_(largest_tensors(step.plan.program)) {
  for (const state::BufferRow& row : state::buffers::table) {
    if (row.bytes != nullptr) store_bytes_ += std::max<std::uint64_t>(row.bytes(spec), 4);
  }
  batch_bytes_ = step.plan.arena.bytes;
  add_slots(step);
}

void MemoryNeed::add_slots(const step::StepProgram& program) {
  batch_bytes_ += slots_of_a_program * (program.slot.size + program.report_bytes);
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
      store_bytes_, batch_bytes_, most);
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
  add(summary_.arena_bytes, fmt::format("activations (the largest: {})", fmt::join(largest_, "; ")));
  add(summary_.weight_bytes, "weights");
  add(summary_.gradient_bytes, "gradients");
  add(summary_.optimizer_bytes, "optimizer state");
  add(summary_.average_bytes, "averages of weights");
  add(summary_.data_bytes, "samples");
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Activations grow as the batch does.
std::string MemoryNeed::hint(std::uint64_t limit) const {
  const double room = limit > store_bytes_ ? static_cast<double>(limit - store_bytes_) : 0;
  const auto fitting =
      static_cast<std::int64_t>(static_cast<double>(batch_) * room / static_cast<double>(batch_bytes_));
  if (batch_ > 0 && fitting < 1) return "not even a batch of 1 fits: a smaller model, or a narrower precision";
  const std::string batch = batch_ > fitting ? fmt::format("a batch of about {} fits, not {}", fitting, batch_)
                                             : std::string("a smaller batch takes less");
  return batch + "; TrainerOptions::accumulate makes one update of several, recompute keeps fewer activations";
}

}  // namespace halfstep::train
