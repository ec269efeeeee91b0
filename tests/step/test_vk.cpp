// The Vulkan layer alone: memory, pipelines, recordings, submits; several devices at once; an adopted device.
#include <halfstep/device.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "host/temporary_folder.h"
#include "plan/lowering.h"
#include "plan/pointwise.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"
#include "vk/device/instance.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"
#include "vk/device/validation.h"
#include "vk/shader/pipelines.h"

using namespace halfstep;

namespace {

/// Sets an environment variable during its lifetime, then restores the previous value.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xff);
  return bytes;
}

/// The shader "copy" applied to whole buffers.
plan::Dispatch copy_dispatch(std::uint32_t bytes) {
  plan::Dispatch dispatch;
  dispatch.label = "test/copy";
  dispatch.shader = "copy";
  dispatch.constants = {64};
  dispatch.push = plan::push_bytes(bytes / 8);
  dispatch.operands = {{0, plan::Access::read}, {1, plan::Access::write}};
  dispatch.groups = plan::groups_for(bytes / 8, 64);
  return dispatch;
}

/// y = -x, as an expression.
plan::Dispatch negation(const plan::Target& target) {
  plan::ProgramBuilder builder(target);
  const TensorType type{DType::f32, {64}};
  plan::Expression expression;
  expression.layout = plan::layout(type.shape);
  expression.reads = {plan::Reading{}};
  expression.value = expression.add({plan::Op::scale, 0, 0, -1});
  builder.dispatch(plan::pointwise(std::move(expression), {{builder.tensor("y", type), plan::Access::write},
                                                           {builder.tensor("x", type), plan::Access::read}}));
  return builder.finish().dispatches.front();
}

/// A recording that copies one buffer to another with a dispatch, and the second to a third with a copy.
struct CopyTwice {
  CopyTwice(vk::Context& context, std::uint32_t bytes)
      : first(context, bytes, vk::Memory::device, "first"),
        second(context, bytes, vk::Memory::device, "second"),
        third(context, bytes, vk::Memory::readback, "third"),
        pipelines(context),
        sets(context),
        recorder(context),
        timeline(context) {
    const plan::Dispatch dispatch = copy_dispatch(bytes);
    const vk::Pipeline& pipeline = pipelines.get(dispatch);
    const vk::BufferRange ranges[] = {{first.handle(), 0, bytes, "first"}, {second.handle(), 0, bytes, "second"}};
    recorder.begin(2);
    recorder.barrier();
    recorder.timestamp();
    const VkDescriptorSet set[] = {sets.make(pipeline, ranges)};
    recorder.dispatch(pipeline, set, dispatch.push, dispatch.groups);
    recorder.timestamp();
    recorder.barrier();
    recorder.copy(second.handle(), 0, third.handle(), 0, bytes);
    recorder.host_barrier();
    recorder.end();
  }
  std::vector<std::byte> result() const {
    third.invalidate(0, third.bytes());
    return {third.mapped(), third.mapped() + third.bytes()};
  }

  vk::Buffer first, second, third;
  vk::Pipelines pipelines;
  vk::DescriptorSets sets;
  vk::Recorder recorder;
  vk::Timeline timeline;
};

/// A device as an application would create it, with no optional feature enabled.
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

  /// Submits the application's own work and waits for it.
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

TEST_CASE("vk: bytes go up and come down, in pieces where there are many") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  const std::size_t sizes[] = {1, 4, 1021, (std::size_t{16} << 20) + 4099};
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    const vk::Buffer buffer(context, size + 8, vk::Memory::device, "bytes");
    vk::fill(context, buffer, 0, buffer.bytes() / 4 * 4, 0xabababab);
    const std::vector<std::byte> bytes = pattern(size, 3);
    vk::upload(context, buffer, 4, bytes);
    std::vector<std::byte> got(size + 5);
    vk::download(context, buffer, 3, std::span(got).first(size + 2));
    CHECK(got[0] == std::byte{0xab});
    CHECK(std::memcmp(got.data() + 1, bytes.data(), size) == 0);
    // Bytes outside the fill are undefined; bytes that were filled but not uploaded to keep their value.
    if (4 + size < buffer.bytes() / 4 * 4) CHECK(got[1 + size] == std::byte{0xab});
  }
}

TEST_CASE("vk: a recording is submitted again and again, and sees what it is given each time") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  CopyTwice work(context, 4096);
  for (unsigned turn = 0; turn < 3; ++turn) {
    vk::upload(context, work.first, 0, pattern(4096, turn));
    work.timeline.wait(work.timeline.submit(work.recorder));
    CHECK(work.result() == pattern(4096, turn));
    if (context.capabilities().timestamp_bits == 0) continue;
    const std::vector<double> times = work.recorder.timestamps();
    REQUIRE(times.size() == 2);
    CHECK(times[0] == 0);
    CHECK(times[1] >= 0);
    CHECK(times[1] < 60e6);
  }
}

TEST_CASE("vk: tickets finish in order, and only wait() waits") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  CopyTwice a(context, 1024), b(context, 1024);
  vk::Timeline timeline(context);
  CHECK(timeline.finished(0));
  CHECK(timeline.completed() == 0);
  const std::uint64_t first = timeline.submit(a.recorder);
  const vk::Recorder* const both[] = {&b.recorder};
  const std::uint64_t second = timeline.submit(both);
  CHECK(first == 1);
  CHECK(second == 2);
  while (!timeline.finished(second)) std::this_thread::yield();
  CHECK(timeline.finished(first));
  CHECK(timeline.completed() == second);
  timeline.wait(second);
  CHECK(timeline.waits() == 0);
  CopyTwice slow(context, 32U << 20);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const std::uint64_t ticket = timeline.submit(slow.recorder);
    timeline.wait(ticket);  // copies of 32 MiB are not done yet
    CHECK(timeline.waits() == i);
    timeline.wait(ticket);
    timeline.wait(first);
    CHECK(timeline.waits() == i);
  }
  CHECK(timeline.completed() == 12);
}

TEST_CASE("vk: one submit of several recordings runs them in order") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  CopyTwice work(context, 512);
  vk::upload(context, work.first, 0, pattern(512, 1));
  vk::Recorder after(context);  // starts with a barrier, as every recording does
  after.begin();
  after.barrier();
  after.fill(work.third.handle(), 0, 8, 0x01010101);
  after.host_barrier();
  after.end();
  const vk::Recorder* const both[] = {&work.recorder, &after};
  work.timeline.wait(work.timeline.submit(both));
  std::vector<std::byte> expected = pattern(512, 1);
  std::fill_n(expected.begin(), 8, std::byte{1});
  CHECK(work.result() == expected);
}

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
    CHECK(device.info().tier == "packed f16");  // 16-bit storage was not declared as enabled
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

TEST_CASE("vk: what passes a limit is an error that names it") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  const VkPhysicalDeviceLimits& limits = context.capabilities().limits;
  CHECK_THROWS_WITH_AS(vk::Buffer(context, std::uint64_t{1} << 60, vk::Memory::device, "arena"),
                       doctest::Contains("expected arena to take at most"), Error);

  vk::Pipelines pipelines(context);
  vk::DescriptorSets sets(context);
  plan::Dispatch dispatch = copy_dispatch(64);
  const vk::Pipeline& pipeline = pipelines.get(dispatch);
  CHECK(&pipeline == &pipelines.get(dispatch));
  const vk::Buffer buffer(context, 1024, vk::Memory::device, "buffer");
  const std::uint64_t too_much = std::uint64_t{limits.maxStorageBufferRange} + 1;
  const vk::BufferRange large[] = {{buffer.handle(), 0, 64, "in"}, {buffer.handle(), 0, too_much, "weights/embedding"}};
  CHECK_THROWS_WITH_AS(sets.make(pipeline, large), doctest::Contains("weights/embedding"), Error);
  CHECK_THROWS_WITH_AS(sets.make(pipeline, std::span(large).first(1)), doctest::Contains("expected 2 buffers"), Error);

  const auto refuses = [&](const plan::Dispatch& bad, const char* text) {
    CHECK_THROWS_WITH_AS(pipelines.get(bad), doctest::Contains(text), Error);
  };
  plan::Dispatch bad = dispatch;
  bad.constants = {limits.maxComputeWorkGroupInvocations + 1};
  refuses(bad, "[test/copy] expected copy to take at most");
  bad = dispatch;
  bad.push.resize(limits.maxPushConstantsSize + 4);
  refuses(bad, "bytes of push constants");
  bad = dispatch;
  bad.operands.pop_back();
  refuses(bad, "each of the 2 bindings");
  bad = dispatch;
  bad.shader = "copy.of";
  refuses(bad, "got copy.of");
  if (limits.maxComputeWorkGroupCount[0] < UINT32_MAX) {
    bad = dispatch;
    bad.groups[0] = limits.maxComputeWorkGroupCount[0] + 1;
    refuses(bad, "workgroups along x");
  }
  vk::Recorder recorder(context);
  recorder.begin();
  CHECK_THROWS_WITH_AS(recorder.dispatch(pipeline, {}, {}, {1, 1, 1}),
                       "[dispatch] expected 4 bytes of push constants for copy, got 0", Error);
  recorder.end();
}

TEST_CASE("vk: many descriptor sets, more than one pool holds") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  vk::Pipelines pipelines(context);
  vk::DescriptorSets sets(context);
  const vk::Buffer buffer(context, 1024, vk::Memory::device, "buffer");
  const vk::Pipeline& pipeline = pipelines.get(copy_dispatch(64));
  const vk::BufferRange ranges[] = {{buffer.handle(), 0, 64, "in"}, {buffer.handle(), 512, 64, "out"}};
  std::vector<VkDescriptorSet> made;
  for (int i = 0; i < 1000; ++i) made.push_back(sets.make(pipeline, ranges));
  std::sort(made.begin(), made.end());
  CHECK(std::unique(made.begin(), made.end()) == made.end());
}

TEST_CASE("vk: specialized kernels and compiled pipelines are kept on disk, and damaged files do no harm") {
  namespace fs = std::filesystem;
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "cache";
  const Variable cache("HALFSTEP_CACHE", folder.string());
  const Device device = Device::open();
  const auto compile = [&] {
    vk::Pipelines pipelines(vk::context_of(device));
    pipelines.get(negation(vk::context_of(device).target()));
  };
  compile();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  REQUIRE(files.size() == 2);
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    const auto whole = fs::file_size(file);
    const auto written = fs::last_write_time(file);
    compile();
    CHECK(fs::last_write_time(file) == written);  // nothing new to store
    fs::resize_file(file, whole / 2);
    compile();
    CHECK(fs::file_size(file) == whole);  // written again
    fs::remove(file);
    compile();
    CHECK(fs::file_size(file) == whole);
  }
  for (const fs::path& file : files) fs::remove(file);
  const Variable off("HALFSTEP_CACHE", "off");
  const Device keeps_nothing = Device::open();
  vk::Pipelines(vk::context_of(keeps_nothing)).get(negation(vk::context_of(keeps_nothing).target()));
  CHECK(fs::is_empty(folder));
  CHECK_FALSE(fs::exists("off"));
}

TEST_CASE("vk: the validation layer sees a missing barrier") {
  const Variable validation("HALFSTEP_VALIDATION", "1");
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  CHECK(context.validating());
  const vk::Buffer buffer(context, 1024, vk::Memory::device, "buffer");
  CHECK(vk::validation_messages().empty());  // also none from earlier tests
  vk::Recorder recorder(context);
  recorder.begin();
  recorder.fill(buffer.handle(), 0, 64, 1);
  recorder.barrier();
  recorder.fill(buffer.handle(), 0, 64, 2);
  CHECK(vk::validation_messages().empty());
  recorder.fill(buffer.handle(), 0, 64, 3);
  recorder.end();
  const std::vector<std::string> messages = vk::take_validation_messages();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("SYNC-HAZARD-WRITE-AFTER-WRITE") != std::string::npos);
  const Variable typo("HALFSTEP_VALIDATION", "yes");
  CHECK_THROWS_WITH_AS(Device::open(), "[device] expected HALFSTEP_VALIDATION to be 0 or 1, got yes", Error);
}
