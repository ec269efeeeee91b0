// Devices: which is opened, several at once, how long one lives, an application's own.
#include <halfstep/device.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/application.h"
#include "host/variable.h"
#include "step/vk_work.h"
#include "vk/command/transfer.h"

using namespace halfstep;
using testing::Application;
using testing::CopyTwice;
using testing::pattern;

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

TEST_CASE("vk: a thread that holds the application's recursive lock submits while another one waits for it") {
  Application application;
  std::recursive_mutex queue;
  std::promise<void> waits;
  std::thread::id holder;
  AdoptedDevice handles = application.handles();
  handles.lock_queue = [&] {
    if (std::this_thread::get_id() != holder) waits.set_value();
    queue.lock();
  };
  handles.unlock_queue = [&] { queue.unlock(); };
  const Device device = Device::adopt(handles);
  CopyTwice work(vk::context_of(device), 256);
  CopyTwice other(vk::context_of(device), 256);
  const auto both = [&] {
    std::unique_lock lock(queue);
    holder = std::this_thread::get_id();
    std::thread second([&] { vk::upload(vk::context_of(device), other.first, 0, pattern(256, 2)); });
    waits.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it waits in lock_queue
    vk::upload(vk::context_of(device), work.first, 0, pattern(256, 1));
    lock.unlock();
    second.join();
  };
  const std::future<void> done = std::async(std::launch::async, both);
  if (done.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    FAIL_CHECK("each thread waits for the other's lock");
    std::_Exit(EXIT_FAILURE);  // neither can be ended
  }
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
