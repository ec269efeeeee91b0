// What is kept of a device between processes, and what it is kept for.
#include <halfstep/guest.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host/capable.h"
#include "host/temporary_folder.h"
#include "tune/note_key.h"
#include "vk/device/notes.h"
#include "vk/device/promised.h"

using namespace halfstep;

namespace {

vk::Capabilities with_limits() {
  vk::Capabilities c = capable();
  for (std::uint32_t& along : c.limits.maxComputeWorkGroupCount) along = 65535;
  c.limits.maxComputeSharedMemorySize = 65536;
  c.max_buffer_bytes = 1U << 30;
  c.buffer_address = true;
  return c;
}

}  // namespace

TEST_CASE("a note is the first one's that found it, unless it was to be found anew") {
  const TemporaryFolder folder;
  const vk::Capabilities c = capable();
  const auto note = [&](const char* value, vk::Notes::Stored stored) {
    vk::Notes notes(c, folder.path(), stored);
    notes.add("kernel", value);
    vk::Notes others(c, folder.path());
    others.add("of another process", "right");
    others.save();
    notes.save();
    CHECK(notes.find("of another process") == "right");
    return notes.find("kernel").value_or("nothing");
  };
  CHECK(note("wrong", vk::Notes::Stored::kept) == "wrong");
  CHECK(note("right", vk::Notes::Stored::kept) == "wrong");
  CHECK(note("right", vk::Notes::Stored::replaced) == "right");
  CHECK(vk::Notes(c, folder.path()).find("kernel") == "right");
}

TEST_CASE("none of the notes is lost that several save at the same time") {
  constexpr int writers = 4;
  constexpr int saves = 8;
  const TemporaryFolder folder;
  const vk::Capabilities c = capable();
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      vk::Notes notes(c, folder.path());
      for (int i = 0; i < saves; ++i) {
        notes.add(std::to_string(writer * saves + i), "found");
        notes.save();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const vk::Notes all(c, folder.path());
  for (int i = 0; i < writers * saves; ++i) CHECK(all.find(std::to_string(i)) == "found");
}

TEST_CASE("where notes cannot be stored is told, and what was read stays known") {
  const TemporaryFolder folder;
  const std::filesystem::path cache = folder.path() / "cache";
  const vk::Capabilities c = capable();
  CHECK(vk::settings({.cache_folder = cache / "of this program"}).cache_folder == cache / "of this program");
  CHECK(std::filesystem::is_directory(cache / "of this program"));
  vk::Notes first(c, cache);
  CHECK(first.save());
  first.add("kernel", "right");
  CHECK(first.save());
  vk::Notes notes(c, cache);
  std::filesystem::remove_all(cache);
  std::ofstream(cache) << "no folder";  // which nobody can write into
  notes.add("other kernel", "right");
  CHECK_FALSE(notes.save());
  CHECK_FALSE(notes.save());
  CHECK(notes.find("kernel") == "right");
  CHECK_FALSE(vk::Notes(c, {}).save());
  CHECK(vk::settings({.cache_folder = cache / "below a file"}).cache_folder.empty());
}

TEST_CASE("each device, driver build and set of pipelines has notes of its own") {
  const TemporaryFolder folder;
  std::set<std::filesystem::path> files;
  const auto is_new = [&](const vk::Capabilities& c) {
    return files.insert(vk::device_file("notes", c, folder.path())).second;
  };
  const vk::Capabilities c = capable();
  CHECK(is_new(c));
  CHECK_FALSE(is_new(c));
  const auto with = [&](const auto& change) {
    vk::Capabilities other = c;
    change(other);
    return other;
  };
  CHECK(is_new(with([](vk::Capabilities& o) { o.device_uuid[15] = 1; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.driver_uuid[15] = 1; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.driver_version = 1; })));
  // The next GPU in the same slot, and the same version built anew, may differ in these alone.
  CHECK(is_new(with([](vk::Capabilities& o) { o.vendor_id = 1; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.device_id = 1; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.name = "Test GPU of the next generation"; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.driver_info = "with another compiler"; })));
  CHECK(is_new(with([](vk::Capabilities& o) { o.pipeline_cache_uuid[15] = 1; })));
}

TEST_CASE("a note about kernels is of the form that a device compiles") {
  const vk::Capabilities c = with_limits();
  std::set<std::string> keys;
  const auto is_new = [&](const vk::Capabilities& capabilities, const vk::Settings& settings) {
    return keys.insert(tune::note_key("gemm by tile64", capabilities, vk::target(capabilities, settings))).second;
  };
  const vk::Settings own = vk::settings({.tier = "", .gemm = ""});
  CHECK(is_new(c, own));
  CHECK_FALSE(is_new(c, own));
  CHECK(is_new(c, vk::settings({.tier = "packed", .gemm = ""})));
  CHECK(is_new(c, vk::settings({.tier = "", .gemm = "tile"})));
  for (const char* limit :
       {"subgroup_size=16", "invocations=128", "groups=64", "shared_memory=16384", "loop_rounds=100", "push_bytes=128",
        "storage_buffers=4", "storage_range=4096", "buffer_bytes=4096"}) {
    CAPTURE(limit);
    vk::Capabilities lowered = c;
    vk::lower_limits(lowered, vk::limits_from(limit));
    CHECK(is_new(lowered, own));
  }
  AdoptedDevice promised;
  bool AdoptedDevice::*const promises[] = {&AdoptedDevice::storage_buffer_16bit_access, &AdoptedDevice::shader_float16,
                                           &AdoptedDevice::shader_float_controls, &AdoptedDevice::subgroup_size_control,
                                           &AdoptedDevice::buffer_device_address};
  for (bool AdoptedDevice::*const promise : promises) promised.*promise = true;
  for (const VkPhysicalDeviceType type : {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_CPU}) {
    const auto with = [&](const AdoptedDevice& what) {
      vk::Capabilities adopted = c;
      adopted.type = type;
      adopted.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;  // of another one addresses are not used
      vk::keep_promised(adopted, what);
      return is_new(adopted, own);
    };
    with(promised);
    for (bool AdoptedDevice::*const missing : promises) {
      AdoptedDevice less = promised;
      less.*missing = false;
      CHECK(with(less));
    }
  }
}

TEST_CASE("a note about kernels is of who rounds to f16, and of nothing that is a program's own") {
  const vk::Capabilities c = with_limits();
  const plan::Target target = vk::target(c, vk::settings({}));
  const auto key = [&](const plan::Target& other) { return tune::note_key("gemm by tile64", c, other); };
  plan::Target same = target;
  same.choices["gemm of a program"] = "tile64";
  same.submit_seconds *= 2;
  same.fusion = !same.fusion;
  CHECK(key(same) == key(target));
  plan::Target rounded = target;
  rounded.float16.rounded_by_driver = !target.float16.rounded_by_driver;
  CHECK(key(rounded) != key(target));
  plan::Target units = target;
  units.matrix_shapes.push_back({16, 16, 16});
  CHECK(key(units) != key(target));
  CHECK(tune::note_key("gemm by tile32", c, target) != key(target));
}
