#include "state/caches.h"

#include <algorithm>
#include <utility>

#include "plan/layout.h"
#include "vk/command/transfer.h"

namespace halfstep::state {
namespace {

/// No device asks for more as the alignment of a storage buffer.
constexpr std::uint64_t alignment = 256;

}  // namespace

CacheLayout::CacheLayout(const graph::Ir& ir, std::span<const graph::ValueId> caches) {
  for (const graph::ValueId id : caches) {
    const graph::Value& cache = ir.values[id];
    entries_.push_back({cache.name, cache.type, bytes_});
    bytes_ += (plan::byte_size(cache.type) + alignment - 1) / alignment * alignment;
  }
}

const CacheLayout::Entry* CacheLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

Caches::Caches(vk::Context& context, CacheLayout layout)
    : layout_(std::move(layout)), buffer_(context, layout_.bytes(), vk::Memory::device, "caches") {
  clear(context);
}

void Caches::clear(vk::Context& context) const {
  vk::fill(context, buffer_, 0, layout_.bytes(), 0);
}

}  // namespace halfstep::state
