#include <algorithm>
#include <iterator>

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

/// The tensors that have places. Each is kept with one of the dispatches during which it is alive: the first of them
/// that is in the middle, as the program's dispatches are halved again and again. So those that are alive at the same
/// time as another are found without a look at all.
class PlacedTensors {
 public:
  explicit PlacedTensors(std::size_t dispatches) : at_(dispatches + 1), within_(dispatches + 1) {}

  void add(const Placed& placed) {
    std::size_t first = 0;
    for (std::size_t end = at_.size(); true;) {
      const std::size_t middle = first + (end - first) / 2;
      ++within_[middle];
      if (placed.lifetime.last < middle) {
        end = middle;
      } else if (placed.lifetime.first > middle) {
        first = middle + 1;
      } else {
        std::vector<Placed>& kept = at_[middle];
        kept.insert(std::ranges::upper_bound(kept, placed.begin, {}, &Placed::begin), placed);
        return;
      }
    }
  }

  /// Those that are alive with `lifetime`, by where they begin.
  std::vector<Placed> alive_with(const Lifetime& lifetime) const {
    std::vector<Placed> found;
    collect(0, at_.size(), lifetime, found);
    return found;
  }

 private:
  /// Appends those that are kept with the dispatches from `first` to `end`. Calls are nested as often as these can be
  /// halved.
  void collect(std::size_t first, std::size_t end, const Lifetime& lifetime, std::vector<Placed>& found) const {
    const std::size_t middle = first + (end - first) / 2;
    if (first >= end || within_[middle] == 0) return;
    const auto begin = std::ssize(found);
    const auto merge_after = [&](std::ptrdiff_t sorted) {
      std::ranges::inplace_merge(found.begin() + begin, found.begin() + sorted, found.end(), {}, &Placed::begin);
    };
    if (lifetime.first < middle) collect(first, middle, lifetime, found);
    const auto before = std::ssize(found);
    std::ranges::copy_if(at_[middle], std::back_inserter(found),
                         [&](const Placed& other) { return other.lifetime.overlaps(lifetime); });
    merge_after(before);
    const auto with_own = std::ssize(found);
    if (lifetime.last > middle) collect(middle + 1, end, lifetime, found);
    merge_after(with_own);
  }

  std::vector<std::vector<Placed>> at_;  ///< sorted by begin
  std::vector<std::size_t> within_;      ///< how many are kept with the dispatches that this is the middle of
};

/// The lowest offset at which a tensor fits between those that are alive at the same time, sorted by begin.
std::uint64_t lowest_fit(const std::vector<Placed>& alive, const Fit& fit) {
  std::uint64_t offset = fit.from(0);
  for (const Placed& other : alive) {
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
  const auto end = static_cast<std::uint32_t>(program.dispatches.size());
  std::vector<TensorId> order;
  for (TensorId t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].region.buffer == arena_buffer && alive[t].used) order.push_back(t);
  }
  // Large tensors first: small ones fit into the remaining gaps.
  std::ranges::stable_sort(order,
                           [&](TensorId a, TensorId b) { return program.tensors[a].bytes > program.tensors[b].bytes; });
  Arena arena;
  PlacedTensors placed(end);
  const std::uint64_t guard = round_up(options.guard_bytes, options.alignment);
  for (const TensorId t : order) {
    const std::uint64_t bytes = round_up(program.tensors[t].bytes, options.alignment) + 2 * guard;
    const Lifetime lifetime = options.reuse ? alive[t] : Lifetime{0, end, true};
    const std::uint64_t offset =
        lowest_fit(placed.alive_with(lifetime), {options, guard, program.tensors[t].bytes, bytes});
    program.tensors[t].region.offset = offset + guard;
    placed.add({offset, offset + bytes, lifetime});
    arena.bytes = std::max(arena.bytes, offset + bytes);
    arena.bytes_unshared += bytes;
  }
  return arena;
}

}  // namespace halfstep::plan
