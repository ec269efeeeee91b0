#include <algorithm>
#include <numeric>

#include "plan/memory_plan.h"
#include "plan/windows.h"

namespace halfstep::plan {
namespace {

struct Placed {
  std::uint64_t begin;
  std::uint64_t end;
  Lifetime lifetime;
};

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Where tensors may lie, and how large one is.
struct Fit {
  const ArenaOptions& options;
  std::uint64_t guard;
  std::uint64_t tensor_bytes;
  std::uint64_t bytes;  ///< with its guards

  /// The lowest offset from `offset` on at which the tensor lies in one part, or if it is larger, each window.
  std::uint64_t from(std::uint64_t offset) const {
    const std::uint64_t begin = offset + guard;
    if (options.part_bytes == 0 || tensor_bytes == 0) return offset;
    if (begin / options.part_bytes == (begin + tensor_bytes - 1) / options.part_bytes) return offset;
    return round_up(begin, tensor_bytes <= options.part_bytes ? options.part_bytes : options.window_bytes) - guard;
  }
};

/// The lowest offset at which a tensor fits between those that are alive at the same time.
std::uint64_t lowest_fit(const std::vector<Placed>& placed, const Lifetime& lifetime, const Fit& fit) {
  std::uint64_t offset = fit.from(0);
  for (const Placed& other : placed) {  // sorted by begin
    if (fit.options.reuse && !other.lifetime.overlaps(lifetime)) continue;
    if (offset + fit.bytes <= other.begin) break;
    offset = fit.from(std::max(offset, other.end));
  }
  return offset;
}

}  // namespace

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> result(program.tensors.size());
  const auto end = static_cast<std::uint32_t>(program.dispatches.size());
  for (std::uint32_t i = 0; i < end; ++i) {
    for (const Operand& operand : program.dispatches[i].operands) {
      Lifetime& lifetime = result[operand.tensor];
      if (!lifetime.used) lifetime.first = i;
      lifetime.last = i;
      lifetime.used = true;
    }
  }
  for (std::size_t t = 0; t < result.size(); ++t) {
    if (program.tensors[t].kept && result[t].used) result[t].last = end;
  }
  return result;
}

ArenaOptions arena_options(const Target& target) {
  ArenaOptions options{.alignment = target.offset_alignment};
  options.part_bytes = target.part_bytes;
  options.window_bytes = window_bytes(target);
  return options;
}

Arena plan_arena(Program& program, const ArenaOptions& options) {
  const std::vector<Lifetime> alive = lifetimes(program);
  std::vector<TensorId> order;
  for (TensorId t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].region.buffer == arena_buffer && alive[t].used) order.push_back(t);
  }
  // Large tensors first: small ones fit into the remaining gaps.
  std::ranges::stable_sort(order,
                           [&](TensorId a, TensorId b) { return program.tensors[a].bytes > program.tensors[b].bytes; });
  Arena arena;
  std::vector<Placed> placed;
  const std::uint64_t guard = round_up(options.guard_bytes, options.alignment);
  for (const TensorId t : order) {
    const std::uint64_t bytes = round_up(program.tensors[t].bytes, options.alignment) + 2 * guard;
    const std::uint64_t offset = lowest_fit(placed, alive[t], {options, guard, program.tensors[t].bytes, bytes});
    program.tensors[t].region.offset = offset + guard;
    const Placed entry{offset, offset + bytes, alive[t]};
    placed.insert(std::ranges::upper_bound(placed, entry.begin, {}, &Placed::begin), entry);
    arena.bytes = std::max(arena.bytes, entry.end);
    arena.bytes_unshared += bytes;
  }
  return arena;
}

}  // namespace halfstep::plan
