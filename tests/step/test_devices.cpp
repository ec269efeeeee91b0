// Devices: which is opened, several at once, how long one lives, an application's own.
#include <halfstep/device.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "step/vk_work.h"
#include "vk/command/transfer.h"
#include "vk/device/instance.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"
#include "vk/device/validation.h"

using namespace halfstep;
using testing::CopyTwice;
using testing::pattern;
using testing::Variable;

namespace {

/// A device as an application would make it, with nothing optional enabled.
class Application {
 public:
  Application() : instance_(vk::create_instance(vk::settings({}).validation)) {
    const DeviceInfo wanted = Device::open().info();
    std::vector<VkPhysicalDevice> devices(Device::list().size());
    auto count = static_cast<std::uint32_t>(devices.size());
    vk::check(instance_.enumerate_physical_devices(instance_.instance, &count, devices.data()), "enumerate");
    physical_ = devices.at(wanted.index);
    family_ = vk::query(instance_, physical_).queue_family.value();
    const float priority = 1;
    auto queue = vk::structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    auto info = vk::structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    vk::check(instance_.create_device(physical_, &info, nullptr, &device_), "vkCreateDevice");
    table_ = vk::load_device(instance_, device_);
    table_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  }
  ~Application() {
    table_.vkDestroyDevice(device_, nullptr);
    vk::destroy_instance(instance_);
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  AdoptedDevice handles() {
    AdoptedDevice handles;
    handles.instance = instance_.instance;
    handles.physical_device = physical_;
    handles.device = device_;
    handles.queue = queue_;
    handles.queue_family = family_;
    handles.lock_queue = [this] { ++locks; };
    handles.unlock_queue = [this] { ++unlocks; };
    return handles;
  }

  /// Submits something of the application's own and waits for it.
  bool works() {
    VkFence fence = VK_NULL_HANDLE;
    const auto info = vk::structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    bool good = table_.vkCreateFence(device_, &info, nullptr, &fence) == VK_SUCCESS;
    good = good && table_.vkQueueSubmit(queue_, 0, nullptr, fence) == VK_SUCCESS;
    good = good && table_.vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX) == VK_SUCCESS;
    table_.vkDestroyFence(device_, fence, nullptr);
    return good;
  }

  int locks = 0;
  int unlocks = 0;

 private:
  vk::InstanceTable instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  vk::DeviceTable table_{};
};

}  // namespace

TEST_CASE("vk: two devices are open at once, each with a thread, and either may go first") {
  auto first = std::make_unique<Device>(Device::open());
  const Device second = Device::open();
  const auto run = [](const Device& device, unsigned seed, bool& good) {
    CopyTwice work(vk::context_of(device), 2048);
    good = true;
    for (unsigned turn = 0; turn < 20; ++turn) {
      vk::upload(vk::context_of(device), work.first, 0, pattern(2048, seed + turn));
      work.timeline.wait(work.timeline.submit(work.recorder));
      good = good && work.result() == pattern(2048, seed + turn);
    }
  };
  bool good_first = false, good_second = false, good_after = false;
  std::thread a([&] { run(*first, 10, good_first); });
  std::thread b([&] { run(second, 90, good_second); });
  a.join();
  b.join();
  first.reset();
  run(second, 40, good_after);
  CHECK(good_first);
  CHECK(good_second);
  CHECK(good_after);
}

TEST_CASE("vk: what was made with a device keeps it alive") {
  auto device = std::make_unique<Device>(Device::open());
  CopyTwice work(vk::context_of(*device), 256);
  vk::upload(vk::context_of(*device), work.first, 0, pattern(256, 5));
  device.reset();
  work.timeline.wait(work.timeline.submit(work.recorder));
  CHECK(work.result() == pattern(256, 5));
}

TEST_CASE("vk: an application's device is used, left as it is, and works afterwards") {
  Application application;
  {
    const Device device = Device::adopt(application.handles());
    CHECK(device.info().tier == "packed f16");  // 16-bit storage was not promised
    CHECK_FALSE(vk::context_of(device).capabilities().float_controls);
    CopyTwice work(vk::context_of(device), 4096);
    vk::upload(vk::context_of(device), work.first, 0, pattern(4096, 8));
    work.timeline.wait(work.timeline.submit(work.recorder));
    CHECK(work.result() == pattern(4096, 8));
    CHECK(application.works());
  }
  CHECK(application.locks == 2);  // the upload and the submit
  CHECK(application.unlocks == 2);
  CHECK(application.works());
}

TEST_CASE("vk: handles that cannot be adopted are refused") {
  CHECK_THROWS_WITH_AS(Device::adopt({}), "[device] expected the application's instance, got null", Error);
  Application application;
  AdoptedDevice handles = application.handles();
  handles.queue_family = 1000;
  CHECK_THROWS_WITH_AS(Device::adopt(handles), doctest::Contains("got 1000"), Error);
  handles = application.handles();
  handles.unlock_queue = nullptr;
  CHECK_THROWS_WITH_AS(Device::adopt(handles), doctest::Contains("lock_queue"), Error);
  CHECK(application.works());
}

TEST_CASE("vk: a device is opened by index, name or HALFSTEP_DEVICE") {
  const std::vector<DeviceInfo> devices = Device::list();
  REQUIRE_FALSE(devices.empty());
  CHECK(Device::open("0").info().name == devices[0].name);
  CHECK(Device::open(devices[0].name.substr(1)).info().name == devices[0].name);
  CHECK_THROWS_WITH_AS(Device::open("no such device"), doctest::Contains(devices[0].name.c_str()), Error);
  const Variable chosen("HALFSTEP_DEVICE", "also no such device");
  CHECK_THROWS_WITH_AS(Device::open(), doctest::Contains("got also no such device"), Error);
  CHECK(Device::open("0").info().index == 0);
}
