#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>

namespace halfstep::testing {

/// While it lives, every instance that is created anew has entry points between the engine and the loader by which the
/// host's memory is not coherent, as on some phones: what it maps is a copy, which only vkFlushMappedMemoryRanges
/// writes to the device's memory, and only vkInvalidateMappedMemoryRanges reads from there, in atoms of 256 bytes.
/// Ranges that are not of atoms fail. One at a time.
class IncoherentVulkan {
 public:
  IncoherentVulkan();
  ~IncoherentVulkan();
  IncoherentVulkan(const IncoherentVulkan&) = delete;
  IncoherentVulkan& operator=(const IncoherentVulkan&) = delete;

  /// How many ranges were written to the device's memory, and read from there.
  std::size_t flushed() const;
  std::size_t invalidated() const;
};

}  // namespace halfstep::testing
