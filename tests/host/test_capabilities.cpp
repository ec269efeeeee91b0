// Decisions about a device before it is opened, and changes to shaders and cache files for it.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "host/capable.h"
#include "host/temporary_folder.h"
#include "host/variable.h"
#include "plan/expression.h"
#include "plan/lowering.h"
#include "vk/device/capabilities.h"
#include "vk/device/cooperative_matrix.h"
#include "vk/device/loader.h"
#include "vk/device/promised.h"
#include "vk/device/selection.h"
#include "vk/device/workarounds.h"
#include "vk/shader/pipeline_cache.h"
#include "vk/shader/sealed_file.h"
#include "vk/shader/shaders.h"
#include "vk/shader/specialize.h"
#include "vk/shader/spirv.h"

using namespace halfstep;

namespace {

/// The families of queues that a device has in a test.
std::vector<VkQueueFamilyProperties>& queues() {
  static std::vector<VkQueueFamilyProperties> families;
  return families;
}

DeviceInfo device(std::uint32_t index, const char* name, const char* type, const char* reason = "") {
  DeviceInfo info;
  info.index = index;
  info.name = name;
  info.type = type;
  info.usable = *reason == 0;
  info.reason = reason;
  return info;
}

/// A physical device of which little is known but its families of queues.
vk::InstanceTable table_of_queues() {
  vk::InstanceTable table;
  table.properties_1_0 = [](VkPhysicalDevice, VkPhysicalDeviceProperties* found) {
    *found = {};
    found->apiVersion = VK_API_VERSION_1_1;
  };
  table.memory_properties = [](VkPhysicalDevice, VkPhysicalDeviceMemoryProperties* found) { *found = {}; };
  table.enumerate_device_extensions = [](VkPhysicalDevice, const char*, std::uint32_t* count, VkExtensionProperties*) {
    *count = 0;
    return VK_SUCCESS;
  };
  table.properties = [](VkPhysicalDevice, VkPhysicalDeviceProperties2*) {};
  table.features = [](VkPhysicalDevice, VkPhysicalDeviceFeatures2*) {};
  table.queue_families = [](VkPhysicalDevice, std::uint32_t* count, VkQueueFamilyProperties* found) {
    *count = static_cast<std::uint32_t>(queues().size());
    if (found != nullptr) std::ranges::copy(queues(), found);
  };
  return table;
}

std::vector<std::byte> cache_data(const vk::Capabilities& c) {
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof header;
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = c.vendor_id;
  header.deviceID = c.device_id;
  std::copy(c.pipeline_cache_uuid.begin(), c.pipeline_cache_uuid.end(), header.pipelineCacheUUID);
  std::vector<std::byte> data(sizeof header + 100, std::byte{7});
  std::memcpy(data.data(), &header, sizeof header);
  return data;
}

}  // namespace

TEST_CASE("a plan's target follows from the device") {
  const plan::Target target = vk::target(capable(), vk::settings({}));
  CHECK(target.float16.storage == plan::Storage16::native);
  CHECK(target.float16.arithmetic);
  CHECK(target.float16.dots);
  CHECK_FALSE(target.cpu);
  CHECK(target.subgroups.size == 32);
  CHECK(target.subgroups.broadcast);
  CHECK_FALSE(target.subgroups.shuffle);
  CHECK(target.max_invocations == 512);  // the smaller of two limits
  CHECK(target.max_push_bytes == 256);
  CHECK(target.max_storage_range == 1u << 30);
  CHECK(target.offset_alignment == 16);  // a quad of f32, although the device would allow 4
  CHECK(target.max_storage_buffers == 16);
  CHECK(vk::tier(target) == "native 16-bit storage, f16 arithmetic");
}

TEST_CASE("work goes to a family of queues for compute and not for graphics, where there is one") {
  const VkQueueFamilyProperties graphics{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT, 1, 36, {}};
  const VkQueueFamilyProperties transfer{VK_QUEUE_TRANSFER_BIT, 1, 0, {}}, compute{VK_QUEUE_COMPUTE_BIT, 2, 64, {}};
  const VkQueueFamilyProperties absent{VK_QUEUE_COMPUTE_BIT, 0, 64, {}}, drawing{VK_QUEUE_GRAPHICS_BIT, 1, 36, {}};
  const auto found = [](std::vector<VkQueueFamilyProperties> families) {
    queues() = std::move(families);
    return vk::query(table_of_queues(), VK_NULL_HANDLE);
  };
  CHECK(found({graphics, transfer, compute}).queue_family == 2);
  CHECK(found({graphics, transfer, compute}).timestamp_bits == 64);
  CHECK(found({drawing, absent, graphics}).queue_family == 2);
  CHECK(found({transfer, drawing, absent}).unusable == std::vector<std::string>{"it has no queue for compute"});
}

TEST_CASE("on an application's own device only what it says it enabled is used") {
  vk::Capabilities c = capable();
  c.cooperative_matrix = c.bfloat16_matrices = c.buffer_address = c.pipeline_executables = true;
  AdoptedDevice handles;
  handles.storage_buffer_16bit_access = true;
  handles.shader_float16 = true;
  handles.shader_float_controls = true;
  vk::keep_promised(c, handles);
  CHECK(c.storage_16bit);
  CHECK(c.unpacks_halves);
  CHECK(c.float16_arithmetic);
  CHECK_FALSE(c.buffer_address);
  CHECK_FALSE(c.subgroup_size_control);
  CHECK_FALSE(c.pipeline_executables);
  CHECK_FALSE(c.cooperative_matrix);
  CHECK_FALSE(c.bfloat16_matrices);
  CHECK_FALSE(c.mixed_dots);
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.dots);
}

TEST_CASE("tiers: f16 arithmetic is not for CPUs, and packed is for devices without 16-bit storage") {
  vk::Capabilities c = capable();
  c.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  CHECK(vk::tier(vk::target(c, vk::settings({}))) == "native 16-bit storage");
  CHECK(plan::storage(vk::target(c, vk::settings({})), DType::f16) == "packed");  // CPUs are faster with words
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.dots);
  c = capable();
  c.float16_arithmetic = false;
  CHECK(vk::tier(vk::target(c, vk::settings({}))) == "native 16-bit storage");
  c = capable();
  c.storage_16bit = false;
  CHECK(vk::tier(vk::target(c, vk::settings({}))) == "packed f16");
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.arithmetic);
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.dots);
  c = capable();
  c.mixed_dots = false;
  CHECK_FALSE(vk::target(c, vk::settings({})).float16.dots);
}

TEST_CASE("HALFSTEP_TIER forces the packed tier, or 16-bit storage on a CPU, and nothing else") {
  {
    const Variable tier("HALFSTEP_TIER", "packed");
    CHECK(vk::target(capable(), vk::settings({})).float16.storage == plan::Storage16::packed);
  }
  {
    const Variable tier("HALFSTEP_TIER", "native");
    vk::Capabilities c = capable();
    c.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    CHECK(plan::storage(vk::target(c, vk::settings({})), DType::f16) == "f16");
  }
  const Variable tier("HALFSTEP_TIER", "fast");
  CHECK_THROWS_WITH_AS(vk::target(capable(), vk::settings({})),
                       "[device] expected HALFSTEP_TIER to be empty, packed or native, got fast", Error);
}

TEST_CASE("a subgroup size is relied on only where it can be asked for or never varies") {
  vk::Capabilities c = capable();
  c.subgroup_size_control = false;
  CHECK(vk::target(c, vk::settings({})).subgroups.size == 0);
  c.min_subgroup_size = 32;
  CHECK(vk::target(c, vk::settings({})).subgroups.size == 32);
  c.min_subgroup_size = c.max_subgroup_size = 0;  // without the extension they are unknown
  CHECK(vk::target(c, vk::settings({})).subgroups.size == 0);
  c.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  CHECK(vk::target(c, vk::settings({})).subgroups.size == 32);
}

TEST_CASE("workarounds take matrix units away where they are emulated or wrong") {
  vk::Capabilities c = capable();
  c.cooperative_matrix = true;
  vk::apply_workarounds(c);
  CHECK(c.cooperative_matrix);
  c.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  c.driver_info = "Mesa 26.1.6-1 (LLVM 21.1.8)";
  for (const std::uint32_t size : {8U, 16U}) {
    c.subgroup_size = size;
    c.cooperative_matrix = true;
    vk::apply_workarounds(c);
    CHECK(c.cooperative_matrix == (size == 8));
  }
  c.cooperative_matrix = true;
  c.driver_id = VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS;
  vk::apply_workarounds(c);
  CHECK_FALSE(c.cooperative_matrix);
}

TEST_CASE("quads are loaded in pairs only where a driver takes less time for them, and gets them right") {
  vk::Capabilities c = capable();
  c.buffer_address = true;
  c.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  c.driver_info = "Mesa 26.1.6-1 (LLVM 21.1.8)";
  for (const std::uint32_t size : {4U, 8U, 16U}) {
    c.subgroup_size = size;
    CHECK(vk::moves_pairs_faster(c) == (size != 4));
  }
  c.driver_info = "Mesa 22.3.6 (LLVM 15.0.6)";
  CHECK_FALSE(vk::moves_pairs_faster(c));
}

TEST_CASE("a GPU converts f16 by itself only where it promises to keep subnormal numbers") {
  const auto converts = [](const vk::Capabilities& device) {
    vk::Capabilities c = device;
    vk::apply_workarounds(c);
    CHECK(c.unpacks_halves == c.storage_16bit);
    CHECK(vk::avoided(c).size() == (c.unpacks_halves ? 0 : 1));
    return c.unpacks_halves;
  };
  CHECK(converts(capable()));
  vk::Capabilities c = capable();
  c.float_controls = false;
  CHECK_FALSE(converts(c));
  c.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  CHECK(converts(c));
  c = capable();
  c.float16.preserves_denormals = false;
  CHECK_FALSE(converts(c));
  c = capable();
  c.float32.preserves_denormals = false;
  CHECK(converts(c));
  c.denormals_independent = false;
  CHECK_FALSE(converts(c));
  // As an application that did not enable the extension hands it over.
  c = capable();
  AdoptedDevice handles;
  handles.storage_buffer_16bit_access = handles.shader_float16 = true;
  vk::keep_promised(c, handles);
  CHECK_FALSE(c.storage_16bit);
  CHECK_FALSE(c.unpacks_halves);
  CHECK(vk::tier(vk::target(c, vk::settings({}))) == "packed f16");
}

TEST_CASE("devices are chosen by rank, index and part of the name") {
  const std::vector<DeviceInfo> devices{device(0, "llvmpipe (LLVM 15)", "cpu"),
                                        device(1, "Old Card", "discrete", "it has no queue for compute"),
                                        device(2, "Intel Iris", "integrated"), device(3, "GeForce 4090", "discrete"),
                                        device(4, "GeForce 4080", "discrete")};
  CHECK(vk::select_device(devices, "") == 3);
  CHECK(vk::select_device(devices, "0") == 0);
  CHECK(vk::select_device(devices, "IRIS") == 2);
  CHECK(vk::select_device(devices, "geforce") == 3);
  CHECK(vk::select_device(devices, "4080") == 4);  // no such index: part of a name
  for (const char* index : {"5", "8", "08", "15", "40"}) {
    CAPTURE(index);
    CHECK_THROWS_WITH_AS(vk::select_device(devices, index), doctest::Contains("expected an index below 5, "), Error);
  }
  CHECK_THROWS_WITH_AS(vk::select_device(devices, "Radeon"),
                       "[device] expected one of 0: llvmpipe (LLVM 15), 1: Old Card, 2: Intel Iris, 3: GeForce 4090, "
                       "4: GeForce 4080, got Radeon. Hint: bin/devices lists them",
                       Error);
  CHECK_THROWS_WITH_AS(vk::select_device(devices, "-1"), doctest::Contains("got -1"), Error);
  CHECK_THROWS_WITH_AS(vk::select_device(devices, "old"),
                       "[device] expected a usable device, got 1: Old Card, but it has no queue for compute. Hint: "
                       "bin/devices lists them",
                       Error);
  CHECK_THROWS_WITH_AS(vk::select_device({}, ""), doctest::Contains("expected a Vulkan device, got none"), Error);
}

TEST_CASE("what is read out of a shader: bindings, and the workgroup with its constants") {
  const vk::EmbeddedShader& copy = vk::find_shader("copy");
  const std::uint32_t constants[] = {64};
  const vk::ShaderFacts facts = vk::shader_facts(copy.words, constants);
  CHECK(facts.bindings == 2);
  CHECK(facts.local_size == std::array<std::uint32_t, 3>{64, 1, 1});
  CHECK_FALSE(facts.has_float16);
  CHECK_FALSE(facts.uses_subgroups);
  std::vector<std::uint32_t> words(copy.words.begin(), copy.words.end());
  words.pop_back();
  words.back() = 0xffff0000;
  CHECK_THROWS_AS(vk::shader_facts(words, {}), Error);
  CHECK_THROWS_AS(vk::shader_facts({}, {}), Error);
}

TEST_CASE("a specialized shader has nothing that its constants rule out") {
  const vk::EmbeddedShader& pointwise = vk::find_shader("pointwise.packed");
  const vk::ShaderFacts whole = vk::shader_facts(pointwise.words, {});
  CHECK(whole.bindings == 1 + plan::max_arguments);
  CHECK(whole.has_storing_set);
  // relu of argument 0.
  plan::Expression expression;
  expression.reads = {plan::Reading{}};
  expression.value = expression.add({plan::Op::relu, 0, 0, 0});
  std::map<std::uint32_t, std::uint32_t> constants{{0, 64}};
  const std::vector<std::uint32_t> words = plan::expression_constants(expression, {false, false});
  for (std::uint32_t i = 0; i < words.size(); ++i) constants[plan::first_expression_constant + i] = words[i];
  const std::vector<std::uint32_t> code = vk::specialized(pointwise.words, constants);
  const vk::ShaderFacts facts = vk::shader_facts(code, {});
  CHECK(facts.bindings == 2);
  CHECK_FALSE(facts.has_storing_set);
  CHECK(facts.local_size == std::array<std::uint32_t, 3>{64, 1, 1});
  CHECK(code.size() * 4 < pointwise.words.size());
}

TEST_CASE("a shader that cannot be specialized stays as it is") {
  const std::vector<std::uint32_t> words{1, 2, 3};
  CHECK(vk::specialized(words, {{0, 64}}) == words);
}

TEST_CASE("a query about matrix units that fails is an Error, and not taken for a device that has none") {
  static std::size_t calls_until_failure = 0;
  static VkResult result = VK_SUCCESS;
  constexpr vk::MatrixQuery query = [](VkPhysicalDevice, std::uint32_t* count, vk::CooperativeMatrixProperties* found) {
    if (calls_until_failure-- == 0) return result;
    *count = 1;
    if (found == nullptr) return VK_SUCCESS;
    *found = {.MSize = 16, .NSize = 8, .KSize = 4, .CType = 1, .ResultType = 1, .scope = 3};  // f16 with sums in f32
    return VK_SUCCESS;
  };
  vk::InstanceTable instance;
  instance.get_proc = [](VkInstance, const char*) { return reinterpret_cast<PFN_vkVoidFunction>(query); };
  const auto shapes = [&](std::size_t calls, VkResult failure) {
    calls_until_failure = calls;
    result = failure;
    return vk::text(vk::matrix_shapes(instance, VK_NULL_HANDLE));
  };
  CHECK(shapes(2, VK_SUCCESS) == "16x8x4 f16 f32");
  for (const std::size_t calls : {0U, 1U}) {
    CHECK_THROWS_WITH_AS(shapes(calls, VK_ERROR_OUT_OF_HOST_MEMORY),
                         doctest::Contains("[vulkan] vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR failed with "
                                           "VK_ERROR_OUT_OF_HOST_MEMORY"),
                         Error);
  }
}

TEST_CASE("bindings that a dispatch has no operand for are given the last") {
  const vk::EmbeddedShader& pointwise = vk::find_shader("pointwise.packed");
  for (std::uint32_t count = 1; count <= 1 + plan::max_arguments; ++count) {
    const vk::ShaderFacts facts = vk::shader_facts(vk::with_bindings(pointwise.words, count), {});
    CHECK(facts.bindings == count);
    CHECK(facts.has_storing_set);
  }
}

TEST_CASE("shaders are found by name, and asking is remembered") {
  CHECK_THROWS_WITH_AS(vk::find_shader("no_such_thing"),
                       "[shader] expected a shader variant of the library, got no_such_thing. Hint: a library may be "
                       "built without some shaders: HALFSTEP_WITHOUT",
                       Error);
  CHECK(vk::has_shader("pointwise"));
  CHECK(!vk::has_shader("point"));
  CHECK(vk::find_shader("pointwise.f32").name == "pointwise.f32");
  const std::vector<std::string> used = vk::used_shaders();
  CHECK(std::ranges::count(used, "pointwise.f32") == 1);
  CHECK(std::ranges::count(used, "no_such_thing") == 0);
}

TEST_CASE("cache files that are damaged or another driver's are ignored") {
  vk::Capabilities c = capable();
  c.vendor_id = 5;
  const std::vector<std::byte> data = cache_data(c);
  const std::vector<std::byte> sealed = vk::seal(data);
  CHECK(vk::unseal(sealed) == data);
  CHECK(vk::drivers_own(data, c) == data);
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{17}, sealed.size() - 1}) {
    std::vector<std::byte> damaged = sealed;
    damaged[at] ^= std::byte{1};
    CHECK(vk::unseal(damaged).empty());
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, std::size_t{24}, sealed.size() - 1}) {
    CHECK(vk::unseal(std::span(sealed).first(length)).empty());
  }
  c.pipeline_cache_uuid[3] = 1;
  CHECK(vk::drivers_own(data, c).empty());
}

TEST_CASE("what was appended to a cache file is read up to the first damage") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "kernels";
  const std::vector<std::vector<std::byte>> parts{std::vector(3, std::byte{1}), std::vector(70000, std::byte{2}),
                                                  std::vector(5, std::byte{3})};
  CHECK(vk::read_sealed_parts(file).parts.empty());
  for (const std::vector<std::byte>& part : parts) REQUIRE(vk::append_sealed(file, part));
  CHECK(vk::read_sealed_parts(file).parts == parts);
  CHECK_FALSE(vk::read_sealed_parts(file).damaged);
  CHECK_FALSE(vk::append_sealed(folder.path(), parts.front()));

  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);  // a process was killed while it wrote
  const vk::SealedParts stored = vk::read_sealed_parts(file);
  CHECK(stored.damaged);
  CHECK(stored.parts == std::vector(parts.begin(), parts.begin() + 2));
}
