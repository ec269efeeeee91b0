#include "harness/faults.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>

#include "harness/device.h"
#include "vk/device/loader.h"

namespace halfstep::testing {
namespace {

constexpr VkResult memory_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY};
constexpr VkResult work_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST};
constexpr VkResult wait_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST,
                                    VK_TIMEOUT};
constexpr VkResult map_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                   VK_ERROR_MEMORY_MAP_FAILED};
constexpr VkResult set_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_FRAGMENTED_POOL,
                                   VK_ERROR_OUT_OF_POOL_MEMORY};
constexpr VkResult instance_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY,    VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                        VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,
                                        VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER};
constexpr VkResult device_errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY,
                                      VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                      VK_ERROR_INITIALIZATION_FAILED,
                                      VK_ERROR_EXTENSION_NOT_PRESENT,
                                      VK_ERROR_FEATURE_NOT_PRESENT,
                                      VK_ERROR_TOO_MANY_OBJECTS,
                                      VK_ERROR_DEVICE_LOST};

/// The functions outside of HALFSTEP_DEVICE_FUNCTIONS that the engine calls and that may fail or make objects.
#define HALFSTEP_OTHER_FUNCTIONS(F)         \
  F(vkCreateDevice)                         \
  F(vkCreateInstance)                       \
  F(vkDestroyDevice)                        \
  F(vkDestroyInstance)                      \
  F(vkEnumerateDeviceExtensionProperties)   \
  F(vkEnumerateInstanceExtensionProperties) \
  F(vkEnumeratePhysicalDevices)

/// An object: its type, since handles of different types may be equal, and its handle.
using Object = std::pair<std::type_index, std::uint64_t>;

struct State {
  std::mutex mutex;
  std::optional<Fault> fault;
  std::string hidden;
  bool happened = false;
  std::set<VkDevice> lost;
  std::map<VkQueue, VkDevice> queues;
  VkDevice newest = VK_NULL_HANDLE;  ///< whose functions were asked for last
  std::map<std::string, std::size_t> calls;
  std::map<Object, std::string> living;
  std::vector<std::string> misuse;
  std::set<const void*> allocators;
  PFN_vkDeviceWaitIdle wait_idle = nullptr;
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc = nullptr;
};

State& state() {
  static State state;
  return state;
}

bool may_be_lost(std::string_view function) {
  for (const VkResult error : errors_of(function)) {
    if (error == VK_ERROR_DEVICE_LOST) return true;
  }
  return false;
}

/// The error that this call returns, or none. What was submitted before the device was lost ends, as it does there.
std::optional<VkResult> count(const char* function, VkDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const std::size_t call = ++s.calls[function];
  if (s.lost.contains(device) && may_be_lost(function)) return VK_ERROR_DEVICE_LOST;
  if (!s.fault || s.happened || s.fault->function != function || s.fault->call != call) return std::nullopt;
  s.happened = true;
  if (s.fault->result == VK_ERROR_DEVICE_LOST && device != VK_NULL_HANDLE) {
    s.lost.insert(device);
    s.wait_idle(device);
  }
  return s.fault->result;
}

template <typename Handle>
std::uint64_t number(Handle handle) {
  std::uint64_t number = 0;
  static_assert(sizeof handle <= sizeof number);
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

/// The device that a call's first argument belongs to, if it is one.
VkDevice device_of(VkDevice device) {
  return device;
}
/// A queue that the engine did not ask for is an application's, which lent it with its device.
VkDevice device_of(VkQueue queue) {
  const std::lock_guard lock(state().mutex);
  const auto known = state().queues.find(queue);
  return known == state().queues.end() ? state().newest : known->second;
}
template <typename Other>
VkDevice device_of(const Other&) {
  return VK_NULL_HANDLE;
}

template <typename Handle>
void born(Handle handle, const char* function) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.living[{typeid(Handle), number(handle)}] = function;
}

template <typename Handle>
void dies(Handle handle, const char* function) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (number(handle) != 0 && s.living.erase({typeid(Handle), number(handle)}) == 0) {
    s.misuse.push_back(std::string(function) + " of what does not live");
  }
}

/// Remembers the callbacks that a call has for memory of the host.
void note_allocator(const VkAllocationCallbacks* allocator) {
  const std::lock_guard lock(state().mutex);
  state().allocators.insert(allocator);
}
template <typename Other>
void note_allocator(const Other&) {}

void note_queue(VkQueue queue, VkDevice device) {
  const std::lock_guard lock(state().mutex);
  state().queues[queue] = device;
}

/// Another device may get the same handle.
void forget(VkDevice device) {
  const std::lock_guard lock(state().mutex);
  state().lost.erase(device);
  std::erase_if(state().queues, [&](const auto& entry) { return entry.second == device; });
}

/// Whether an argument is where a call leaves a handle or an address.
template <typename Argument>
concept TakesHandle = std::is_pointer_v<Argument> && std::is_pointer_v<std::remove_pointer_t<Argument>> &&
    !std::is_const_v<std::remove_pointer_t<Argument>>;

template <typename Tag, typename Function>
struct Hook;

/// The entry point of the function that Tag names, and the one that it stands before.
template <typename Tag, typename Result, typename... Arguments>
struct Hook<Tag, Result(VKAPI_PTR*)(Arguments...)> {
  static constexpr std::string_view name = Tag::name;
  static constexpr bool creates = name.starts_with("vkCreate") || name == "vkAllocateMemory";
  static constexpr bool destroys = name.starts_with("vkDestroy") || name == "vkFreeMemory";

  static inline Result(VKAPI_PTR* next)(Arguments...) = nullptr;

  static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
    auto all = std::tie(arguments...);
    constexpr std::size_t last = sizeof...(Arguments) - 1;
    if constexpr (destroys) {
      // Before the call: another thread may be given the same handle afterwards.
      const auto object = std::get<last - 1>(all);
      dies(object, Tag::name);
    }
    const VkDevice device = device_of(std::get<0>(all));
    (note_allocator(arguments), ...);
    const std::optional<VkResult> error = count(Tag::name, device);
    if constexpr (std::is_same_v<Result, VkResult>) {
      auto& target = std::get<last>(all);
      if (error) {
        if constexpr (TakesHandle<std::remove_cvref_t<decltype(target)>>) {
          if (target != nullptr) std::memset(static_cast<void*>(target), 0xDB, sizeof *target);
        }
        return *error;
      }
      const Result result = next(arguments...);
      if constexpr (creates) {
        if (result == VK_SUCCESS) born(*target, Tag::name);
      }
      return result;
    } else {
      next(arguments...);
      if constexpr (name == "vkGetDeviceQueue") note_queue(*std::get<last>(all), device);
      if constexpr (name == "vkDestroyDevice") forget(device);
    }
  }
};

#define HALFSTEP_TAG(function)                     \
  struct Tag_##function {                          \
    static constexpr const char* name = #function; \
  };
HALFSTEP_DEVICE_FUNCTIONS(HALFSTEP_TAG)
HALFSTEP_OTHER_FUNCTIONS(HALFSTEP_TAG)
#undef HALFSTEP_TAG

/// The hook for a function, which from now on calls `next`; `next` where there is none.
PFN_vkVoidFunction hooked(std::string_view function, PFN_vkVoidFunction next) {
  if (next == nullptr) return nullptr;
#define HALFSTEP_HOOK(name)                                    \
  if (function == #name) {                                     \
    using Entry = Hook<Tag_##name, PFN_##name>;                \
    Entry::next = reinterpret_cast<PFN_##name>(next);          \
    return reinterpret_cast<PFN_vkVoidFunction>(&Entry::call); \
  }
  HALFSTEP_DEVICE_FUNCTIONS(HALFSTEP_HOOK)
  HALFSTEP_OTHER_FUNCTIONS(HALFSTEP_HOOK)
#undef HALFSTEP_HOOK
  return next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char* name) {
  State& s = state();
  if (s.hidden == name) return nullptr;
  s.newest = device;
  s.wait_idle = reinterpret_cast<PFN_vkDeviceWaitIdle>(s.get_device_proc(device, "vkDeviceWaitIdle"));
  return hooked(name, s.get_device_proc(device, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance instance, const char* name) {
  State& s = state();
  const PFN_vkVoidFunction found = s.get_proc(instance, name);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return hooked(name, found);
  s.get_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&get_device_proc);
}

}  // namespace

std::span<const VkResult> errors_of(std::string_view function) {
  static const std::set<std::string_view> of_memory{"vkAllocateCommandBuffers",
                                                    "vkAllocateMemory",
                                                    "vkBeginCommandBuffer",
                                                    "vkBindBufferMemory",
                                                    "vkCreateBuffer",
                                                    "vkCreateBufferView",
                                                    "vkCreateCommandPool",
                                                    "vkCreateComputePipelines",
                                                    "vkCreateDescriptorPool",
                                                    "vkCreateDescriptorSetLayout",
                                                    "vkCreateFence",
                                                    "vkCreatePipelineCache",
                                                    "vkCreatePipelineLayout",
                                                    "vkCreateQueryPool",
                                                    "vkCreateShaderModule",
                                                    "vkEndCommandBuffer",
                                                    "vkFlushMappedMemoryRanges",
                                                    "vkGetPipelineCacheData",
                                                    "vkInvalidateMappedMemoryRanges",
                                                    "vkResetCommandPool",
                                                    "vkResetFences",
                                                    "vkEnumerateDeviceExtensionProperties",
                                                    "vkEnumeratePhysicalDevices",
                                                    "vkEnumerateInstanceExtensionProperties"};
  static const std::set<std::string_view> of_work{"vkQueueSubmit", "vkGetFenceStatus", "vkGetQueryPoolResults"};
  if (of_memory.contains(function)) return memory_errors;
  if (of_work.contains(function)) return work_errors;
  if (function == "vkWaitForFences") return wait_errors;
  if (function == "vkMapMemory") return map_errors;
  if (function == "vkAllocateDescriptorSets") return set_errors;
  if (function == "vkCreateInstance") return instance_errors;
  if (function == "vkCreateDevice") return device_errors;
  return {};
}

FaultyVulkan::FaultyVulkan() {
  device();  // is opened without this
  state().get_proc = vk::load_global().get_proc;
  vk::replace_loader(entry());
  plan(std::nullopt);
}

FaultyVulkan::~FaultyVulkan() {
  plan(std::nullopt);
  vk::replace_loader(nullptr);
}

void FaultyVulkan::plan(const std::optional<Fault>& fault) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.fault = fault;
  s.hidden.clear();
  s.happened = false;
  s.lost.clear();
  s.calls.clear();
  s.living.clear();
  s.misuse.clear();
  s.allocators.clear();
}

void FaultyVulkan::hide(std::string_view function) {
  state().hidden = function;
}

bool FaultyVulkan::happened() const {
  return state().happened;
}

std::map<std::string, std::size_t> FaultyVulkan::calls() const {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

std::vector<std::string> FaultyVulkan::misuse() const {
  const std::lock_guard lock(state().mutex);
  return state().misuse;
}

std::vector<std::string> FaultyVulkan::living() const {
  const std::lock_guard lock(state().mutex);
  std::vector<std::string> lines;
  for (const auto& [object, function] : state().living) lines.push_back("left by " + function);
  return lines;
}

std::set<const void*> FaultyVulkan::allocators() const {
  const std::lock_guard lock(state().mutex);
  return state().allocators;
}

PFN_vkGetInstanceProcAddr FaultyVulkan::entry() {
  return &get_proc;
}

}  // namespace halfstep::testing
