#pragma once

#include <halfstep/halfstep.h>

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// An application's own Vulkan, by plain calls: what embed_in_app lends to Halfstep.
namespace samples::own_device {

/// Throws Error, which names the call, unless it has succeeded.
void check(VkResult result, const char* what);

/// A structure of Vulkan with its type, and otherwise zero.
template <typename Structure>
Structure of_type(VkStructureType type) {
  Structure result{};
  result.sType = type;
  return result;
}

/// The application's instance, device and queue.
class Machine {
 public:
  /// On the first device with that in its name. HALFSTEP_VALIDATION=1 enables the validation layer.
  explicit Machine(const std::string& wanted);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// What Halfstep needs to know of it.
  halfstep::AdoptedDevice handles() const;

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;

 private:
  void create_instance();
  void find(const std::string& wanted);
  void create_device();
  void destroy() noexcept;
};

/// A storage buffer in memory with these properties, which the host maps if it sees it.
class Buffer {
 public:
  Buffer(const Machine& machine, std::uint64_t bytes, VkMemoryPropertyFlags properties);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return handle_; }
  const void* mapped() const { return mapped_; }
  /// A range of it as a tensor of floats.
  halfstep::DeviceBuffer tensor(std::uint64_t first, std::uint64_t count) const;

 private:
  VkDevice device_;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* mapped_ = nullptr;
};

/// As in shaders/app_scene.glsl.
struct Push {
  std::uint32_t count = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t choice = 0;
  std::uint32_t positions = 0;
  std::uint32_t colours = 0;
};

/// A compute pipeline over two buffers.
class Kernel {
 public:
  Kernel(const Machine& machine, const std::vector<std::uint32_t>& spirv, const Buffer& numbers, const Buffer& picture);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  void dispatch(VkCommandBuffer commands, const Push& push) const;

 private:
  void create_layout();
  void bind(const std::array<VkBuffer, 2>& buffers);
  void create_pipeline(const std::vector<std::uint32_t>& spirv);

  VkDevice device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

/// A command buffer, and the fence of its last submit.
class Commands {
 public:
  explicit Commands(const Machine& machine);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Begins to record it anew. It must not be under way.
  VkCommandBuffer begin();
  void end();
  void submit();
  /// Waits for what was submitted last.
  void wait();

 private:
  const Machine& machine_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace samples::own_device
