#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "vk/command/memory.h"
#include "vk/device/context.h"

namespace halfstep::state {

/// How the caches of a graph (Scope::cache) lie in one buffer.
class CacheLayout {
 public:
  struct Entry {
    std::string name;
    TensorType type;
    std::uint64_t offset = 0;  ///< in bytes
  };

  CacheLayout() = default;
  CacheLayout(const graph::Ir& ir, std::span<const graph::ValueId> caches);

  /// The entry of a name; null where there is none.
  const Entry* find(std::string_view name) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<Entry> entries_;
  std::uint64_t bytes_ = 0;
};

/// Caches on the device, for the programs that share them.
class Caches {
 public:
  /// All are zeros. Throws Error where there is no memory for them.
  Caches(vk::Context& context, CacheLayout layout);

  /// Makes all zeros again, after what was submitted before. Blocks.
  void clear(vk::Context& context) const;

  const CacheLayout& layout() const { return layout_; }
  const vk::Buffer& buffer() const { return buffer_; }

 private:
  CacheLayout layout_;
  vk::Buffer buffer_;
};

}  // namespace halfstep::state
