#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::testing {

/// A call of Vulkan that fails: the `call`th of `function`, from 1, with `result`. VK_ERROR_DEVICE_LOST stays: whatever
/// may return it does so for that device from then on, and nothing is submitted to it any more. A failed call leaves
/// garbage in what it was to fill, as drivers may.
struct Fault {
  std::string function;
  std::size_t call = 1;
  VkResult result = VK_ERROR_UNKNOWN;
};

/// The errors that the specification allows a function to return; empty for those that return nothing.
std::span<const VkResult> errors_of(std::string_view function);

/// While it lives, every instance that is created anew has entry points between the engine and the loader, which count
/// calls, know which objects live, and let one call fail. One at a time.
class FaultyVulkan {
 public:
  FaultyVulkan();
  ~FaultyVulkan();
  FaultyVulkan(const FaultyVulkan&) = delete;
  FaultyVulkan& operator=(const FaultyVulkan&) = delete;

  /// Counts anew, forgets which objects live and which devices are lost, and lets this call fail, or none.
  void plan(const std::optional<Fault>& fault);
  /// A device function that drivers have no more: its entry point is null. Empty for none.
  void hide(std::string_view function);
  /// Whether the call has failed.
  bool happened() const;
  /// The calls of each function since plan().
  std::map<std::string, std::size_t> calls() const;
  /// What was destroyed although it did not live, and what lives, if it should not: one line each.
  std::vector<std::string> misuse() const;
  std::vector<std::string> living() const;

  /// What calls since plan() had as VkAllocationCallbacks, null included.
  std::set<const void*> allocators() const;

  /// The entry point that an application hands to Device::adopt.
  static PFN_vkGetInstanceProcAddr entry();
};

}  // namespace halfstep::testing
