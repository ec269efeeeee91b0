// An application that creates a Vulkan device itself, lets Halfstep train on it, and continues to use it afterwards.
// Vulkan's functions come from the loader, or with OWN_VOLK from the global pointers of the application's own volk.
#ifdef OWN_VOLK
#include <volk.h>
#else
#include <vulkan/vulkan.h>
#endif

#include <halfstep/halfstep.h>

#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(what) + ": " + std::to_string(result));
}

class Application {
 public:
  Application() {
    make_instance();
    std::uint32_t count = 1;
    check(vkEnumeratePhysicalDevices(instance_, &count, &physical_), "vkEnumeratePhysicalDevices");
    find_family();
    make_device();
  }
  ~Application() {
    vkDestroyDevice(device_, nullptr);
    vkDestroyInstance(instance_, nullptr);
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  halfstep::AdoptedDevice handles() const {
    halfstep::AdoptedDevice handles;
    handles.instance = instance_;
    handles.physical_device = physical_;
    handles.device = device_;
    handles.queue = queue_;
    handles.queue_family = family_;
    return handles;
  }

  /// Submits to the queue and waits.
  void submit() {
    VkFenceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence fence = VK_NULL_HANDLE;
    check(vkCreateFence(device_, &info, nullptr, &fence), "vkCreateFence");
    check(vkQueueSubmit(queue_, 0, nullptr, fence), "vkQueueSubmit");
    check(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkDestroyFence(device_, fence, nullptr);
  }

 private:
  void make_instance() {
#ifdef OWN_VOLK
    check(volkInitialize(), "volkInitialize");
#endif
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    check(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
#ifdef OWN_VOLK
    volkLoadInstance(instance_);
#endif
  }

  void find_family() {
    std::uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    while (family_ < count && (families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) family_++;
    if (family_ == count) throw std::runtime_error("no queue family with compute");
  }

  void make_device() {
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    check(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
#ifdef OWN_VOLK
    volkLoadDevice(device_);
#endif
    vkGetDeviceQueue(device_, family_, 0, &queue_);
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
};

/// The loss of y = w x after `steps` steps; x and y are chosen so that w = 2 gives 0.
double train(const halfstep::AdoptedDevice& handles, int steps) {
  using namespace halfstep;
  Graph graph;
  const Tensor x = graph.input("x", {4, 1});
  const Tensor y = graph.input("y", {4, 1});
  const Tensor w = graph.root().parameter("w", {1, 1}, constant(0));
  Trainer trainer = Trainer::compile(Device::adopt(handles), graph,
                                     {.loss = mse_loss(matmul(x, w), y), .optimizer = Sgd{.rate = 0.1F}});
  const float xs[] = {-1, 0, 1, 2};
  const float ys[] = {-2, 0, 2, 4};
  for (int step = 0; step < steps; step++) trainer.step({{"x", std::span(xs)}, {"y", std::span(ys)}});
  trainer.finish();
  return trainer.take_totals().mean_loss;
}

}  // namespace

int main() {
  try {
    Application application;
    application.submit();
    const double first = train(application.handles(), 1);
    const double mean = train(application.handles(), 20);
    application.submit();
    std::printf("loss %.3f at first, %.3f on average\n", first, mean);
    return mean < first / 2 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
