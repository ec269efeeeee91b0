// The GPU layer by itself: memory, pipelines, recordings, submits.
#include <halfstep/device.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>
#include <whole_group.spirv.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "harness/errors.h"
#include "host/temporary_folder.h"
#include "host/variable.h"
#include "plan/lowering.h"
#include "step/vk_work.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"
#include "vk/device/validation.h"
#include "vk/shader/executables.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/shaders.h"

using namespace halfstep;
using testing::copy_dispatch;
using testing::CopyTwice;
using testing::negation;
using testing::pattern;

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
    std::vector<std::uint64_t> ticks;
    work.recorder.read_timestamps(ticks);
    REQUIRE(ticks.size() == 2);
    CHECK(vk::microseconds(context, ticks[0], ticks[1]) < 60e6);
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
  std::size_t submitted = 0;
  const std::uint64_t second = timeline.submit(both, submitted);
  CHECK(submitted == 1);
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
  std::size_t submitted = 0;
  work.timeline.wait(work.timeline.submit(both, submitted));
  CHECK(submitted == 2);
  std::vector<std::byte> expected = pattern(512, 1);
  std::fill_n(expected.begin(), 8, std::byte{1});
  CHECK(work.result() == expected);
}

TEST_CASE("vk: threads record with labels, record again and end, on one device at once") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  const auto record = [&context](int recordings) {
    for (int made = 0; made < recordings; ++made) {
      vk::Recorder recorder(context);
      for (int again = 0; again < 2; ++again) {
        recorder.begin();
        recorder.begin_label("nothing");
        recorder.end_label();
        recorder.end();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(record, context.has_debug_utils() ? 500 : 10);
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("vk: workgroups count from the number that they are submitted with") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  constexpr std::uint32_t count = 10;
  const vk::Buffer numbers(context, count * 8, vk::Memory::device, "numbers");
  vk::fill(context, numbers, 0, numbers.bytes(), 77);
  plan::Dispatch dispatch;
  dispatch.label = dispatch.shader = "whole_group";
  dispatch.spirv = std::make_shared<const std::vector<std::uint32_t>>(halfstep_kernels::whole_group().begin()->second);
  dispatch.constants = {16};
  dispatch.push = plan::push_bytes(count);
  dispatch.operands = {{0, plan::Access::write}};
  vk::Pipelines pipelines(context);
  vk::DescriptorSets sets(context);
  const vk::Pipeline& pipeline = pipelines.get(dispatch, vk::Pipelines::Start::any);
  CHECK(&pipeline != &pipelines.get(dispatch));
  const vk::BufferRange range[] = {{numbers.handle(), 0, numbers.bytes(), "numbers"}};
  const VkDescriptorSet set[] = {sets.make(pipeline, range)};
  vk::Recorder recorder(context);
  recorder.begin();
  recorder.barrier();
  for (const std::uint32_t first : {0U, 6U}) recorder.dispatch(pipeline, set, dispatch.push, {3, 1, 1}, first);
  recorder.barrier();
  recorder.end();
  vk::Timeline timeline(context);
  timeline.wait(timeline.submit(recorder));
  std::vector<std::uint32_t> got(2 * count);
  vk::download(context, numbers, 0, std::as_writable_bytes(std::span(got)));
  CHECK(got == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 77, 77, 77, 77, 77, 77, 6, 6, 7, 7, 8, 8, 77, 77});
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

TEST_CASE("vk: shared memory and subgroups that a device is told not to have are refused") {
  const Device device = Device::open({}, {.limits = "shared_memory=16384,subgroup_size=0,invocations=128"});
  vk::Pipelines pipelines(vk::context_of(device));
  const auto refuses = [&](const char* shader, std::uint32_t local_size, const char* text) {
    plan::Dispatch bad = copy_dispatch(64);
    bad.shader = shader;
    bad.constants = {local_size};
    CHECK_THROWS_WITH_AS(pipelines.get(bad), doctest::Contains(text), Error);
  };
  refuses("gemm.row_row.f32.tile128", 128, "tile128 to take at most 16384 bytes of shared memory, the device's limit");
  refuses("gemm.row_row.f32.tile128", 256, "to take at most 128 invocations");
  refuses("gemm.row_row.f32.lanes", 8, "expected a device whose subgroups are known to have one size");
}

TEST_CASE("vk: a driver tells what it compiled a pipeline to, or compiling says that it cannot") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  if (!context.capabilities().pipeline_executables) {
    CHECK_THROWS_WITH_AS(vk::Pipelines(context, vk::Pipelines::Capture::yes),
                         doctest::Contains("VK_KHR_pipeline_executable_properties"), Error);
    return;
  }
  vk::Pipelines pipelines(context, vk::Pipelines::Capture::yes);
  const std::vector<vk::Executable> found = vk::executables_of(context, pipelines.get(copy_dispatch(64)).handle);
  REQUIRE_FALSE(found.empty());
  CHECK_FALSE(found.front().statistics.empty());
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

TEST_CASE("vk: all who work on a device share its pipelines, and those who come later") {
  const Device device = Device::open();
  vk::Context& context = vk::context_of(device);
  const plan::Dispatch dispatch = copy_dispatch(64);
  VkPipeline first = VK_NULL_HANDLE;
  {
    vk::Pipelines one(context);
    vk::Pipelines other(context);
    first = one.get(dispatch).handle;
    CHECK(other.get(dispatch).handle == first);
    CHECK(other.get(dispatch, vk::Pipelines::Start::any).handle != first);
  }
  vk::Pipelines later(context);
  CHECK(later.get(dispatch).handle == first);
  CHECK(later.get(dispatch).shader == dispatch.shader);
  plan::Dispatch windowed = dispatch;
  windowed.windows = {.shift = 20, .operands = {{.count = 2, .rest = 2}, {}}};
  const VkPipeline of_first_operand = later.get(windowed).handle;
  CHECK(of_first_operand != first);
  windowed.windows = {.shift = 20, .operands = {{}, {.count = 2, .rest = 2}}};
  CHECK(later.get(windowed).handle != of_first_operand);
  vk::patch_shaders(nullptr);
  CHECK(later.get(dispatch).handle != first);  // as a test may have changed the shader
}

TEST_CASE("vk: of the pipelines that nobody uses, a device keeps the last") {
  const Device device = Device::open();
  vk::PipelinePool pool(vk::context_of(device));
  constexpr std::uint32_t keys = 1500;
  static_assert(keys > vk::PipelinePool::most_unused + 100);
  const auto key = [](std::uint32_t number) { return vk::PipelineKey{.shader = "none", .push_bytes = number}; };
  const auto used = pool.add(key(0), {});
  const auto same = pool.add(key(0), {.bindings = 7});
  CHECK(same == used);
  for (std::uint32_t i = 1; i < keys; ++i) {
    pool.add(key(i), {});
    pool.find(key(1));
  }
  CHECK(pool.find(key(0)) == used);
  CHECK(used->bindings == 0);
  CHECK(pool.find(key(1)));
  std::uint32_t kept = 0;
  for (std::uint32_t i = 2; i < keys; ++i) kept += pool.find(key(i)) ? 1U : 0U;
  CHECK(kept == vk::PipelinePool::most_unused);  // with 1, without the newest, which was used until the end
  CHECK_FALSE(pool.find(key(2)));
  CHECK(pool.find(key(keys - 1)));
}

TEST_CASE("vk: specialized kernels and compiled pipelines are kept on disk, and damaged files do no harm") {
  namespace fs = std::filesystem;
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "cache";
  const Variable cache("HALFSTEP_CACHE", folder.string());
  const auto compile = [&] {
    const Device device = Device::open({}, {.may_fork = false});  // which keeps no notes of matrix units there
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
  const std::string missing = testing::error_of([] { Device::open(); });
  if (!missing.empty()) {  // a machine may be without the layer
    CHECK(missing.find("expected the layer VK_LAYER_KHRONOS_validation") != std::string::npos);
    return;
  }
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
