#include "state/shard.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace halfstep::state {
namespace {

/// No parameter shares such a block with another one, and f16's common powers of two are those of such blocks too.
constexpr std::uint64_t block = 128;

/// Consecutive elements, cut into a part for each rank.
std::vector<std::size_t> equal_ends(std::uint64_t count, std::uint64_t ranks) {
  std::vector<std::size_t> ends;
  for (std::uint64_t r = 1; r <= ranks; ++r) ends.push_back(count / block * r / ranks * block);
  return ends;
}

/// The elements of `whole` from `first` to before `end`, which are its ranks' as before.
Shared cut(const Shared& whole, std::uint64_t first, std::uint64_t end) {
  Shared made = whole;
  made.first = first;
  made.count = end - first;
  made.first_moment += (first - whole.first) * whole.states;
  for (std::size_t& at : made.ends) at = std::clamp(whole.first + at, first, end) - first;
  return made;
}

std::uint64_t elements_of(const std::vector<Held>& held) {
  std::uint64_t sum = 0;
  for (const Held& each : held) sum += each.count;
  return sum;
}

}  // namespace

std::vector<Bucket> buckets_of(const ParameterLayout& layout, std::int64_t bytes) {
  std::vector<Bucket> result;
  const std::vector<ParameterEntry>& entries = layout.entries();
  std::uint64_t end_element = layout.trained_elements();
  std::size_t end = 0;
  while (end < entries.size() && !entries[end].training.frozen) ++end;
  for (std::size_t first = end; first-- > 0;) {
    const std::uint64_t element = entries[first].first_element;
    if (first > 0 && 4 * (end_element - element) < static_cast<std::uint64_t>(bytes)) continue;
    result.push_back({first, end, element, end_element - element});
    end = first;
    end_element = element;
  }
  return result;
}

Shard::Shard(const ParameterLayout& layout, const WeightStorage& weights, const Ranks& ranks)
    : rank_(ranks.rank()), masters_apart_(weights.copy) {
  share_out(layout, ranks);
  cut_by_reading(layout, weights);
  if (masters_apart_) place_masters(layout);
  place_moments();
}

void Shard::share_out(const ParameterLayout& layout, const Ranks& ranks) {
  for (const Bucket& bucket : buckets_of(layout, ranks.bucket_bytes)) {
    for (const ParameterRun& run : layout.runs()) {
      const std::uint64_t first = std::max(bucket.first_element, run.first_element);
      const std::uint64_t end =
          std::min(bucket.first_element + bucket.elements, run.first_element + run.padded_elements);
      if (run.training.frozen || first >= end) continue;
      const std::uint32_t states = run.training.states;
      summed_.push_back({.first = first,
                         .count = end - first,
                         .ends = equal_ends(end - first, static_cast<std::uint64_t>(ranks.size())),
                         .first_moment = run.first_moment + (first - run.first_element) * states,
                         .states = states});
    }
  }
}

void Shard::cut_by_reading(const ParameterLayout& layout, const WeightStorage& weights) {
  const std::vector<ParameterEntry>& entries = layout.entries();
  const auto reads_master = [&](const ParameterEntry& entry) {
    return weights.copy && entry.type.dtype != weights.compute;
  };
  for (const Shared& whole : summed_) {
    const std::uint64_t end = whole.first + whole.count;
    auto entry = std::ranges::lower_bound(entries, whole.first, {}, &ParameterEntry::first_element);
    while (entry != entries.end() && entry->first_element < end) {
      const auto next = std::find_if(entry, entries.end(), [&](const ParameterEntry& other) {
        return other.first_element >= end || reads_master(other) != reads_master(*entry);
      });
      const std::uint64_t last = next == entries.end() ? end : std::min(end, next->first_element);
      gathered_.push_back(cut(whole, entry->first_element, last));
      gathered_.back().read_masters = reads_master(*entry);
      entry = next;
    }
  }
}

void Shard::place_masters(const ParameterLayout& layout) {
  std::uint64_t place = 0;
  const auto place_next = [&](std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    masters_.push_back({first, end - first, place});
    place += end - first;
  };
  for (const Shared& shared : gathered_) {
    if (shared.read_masters) {
      place_next(shared.first, shared.first + shared.count);
    } else {
      place_next(shared.own_first(rank_), shared.own_end(rank_));
    }
  }
  place_next(layout.trained_elements(), layout.master_elements());
}

void Shard::place_moments() {
  std::uint64_t place = 0;
  for (const Shared& shared : gathered_) {
    const std::uint64_t count = (shared.own_end(rank_) - shared.own_first(rank_)) * shared.states;
    if (count == 0) continue;
    moments_.push_back({shared.first_moment + (shared.own_first(rank_) - shared.first) * shared.states, count, place});
    place += count;
  }
}

std::vector<Part> Shard::parts(const ParameterRun& run) const {
  std::vector<Part> result;
  for (const Shared& shared : gathered_) {
    const bool within = shared.first >= run.first_element && shared.first < run.first_element + run.padded_elements;
    const std::uint64_t first = shared.own_first(rank_);
    const std::uint64_t count = shared.own_end(rank_) - first;
    if (!within || count == 0) continue;
    const std::uint64_t moment = shared.first_moment + (first - shared.first) * shared.states;
    result.push_back({.first = first,
                      .count = count,
                      .first_master = masters_apart_ ? place_in(masters_, first) : first,
                      .first_moment = shared.states > 0 ? place_in(moments_, moment) : 0});
  }
  return result;
}

std::uint64_t Shard::master_elements() const {
  return elements_of(masters_);
}

std::uint64_t Shard::moment_elements() const {
  return elements_of(moments_);
}

std::uint64_t place_in(const std::vector<Held>& held, std::uint64_t element) {
  for (const Held& each : held) {
    if (element >= each.first && element - each.first < each.count) return each.place + (element - each.first);
  }
  fail("ranks", fmt::format("expected an element that this rank keeps, got {}", element));
}

}  // namespace halfstep::state
