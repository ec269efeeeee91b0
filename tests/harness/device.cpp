#include "harness/device.h"

#include <halfstep/process.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace halfstep::testing {

namespace {

struct Shared {
  std::mutex mutex{};
  std::optional<Device> device{};
  std::shared_ptr<vk::Pipelines> pipelines{};
};

Shared& shared() {
  static Shared of_process;
  return of_process;
}

}  // namespace

const Device& device() {
  const std::scoped_lock lock(shared().mutex);
  if (!shared().device) shared().device = Device::open();
  return *shared().device;
}

std::shared_ptr<vk::Pipelines> pipelines() {
  vk::Context& of_device = context();
  const std::scoped_lock lock(shared().mutex);
  if (!shared().pipelines) shared().pipelines = std::make_shared<vk::Pipelines>(of_device);
  return shared().pipelines;
}

void close_device() {
  shared().pipelines.reset();
  shared().device.reset();
}

bool on_swiftshader() {
  return context().info().name.find("SwiftShader") != std::string::npos;
}

bool every_variant() {
  static const bool wanted = environment("HALFSTEP_EVERY_VARIANT") == "1";
  return wanted;
}

bool device_takes(std::uint64_t groups, std::uint64_t bytes) {
  const plan::Target target = context().target();
  const std::uint64_t most_groups = std::uint64_t{target.max_groups[0]} * target.max_groups[1];
  const std::uint64_t most_bytes =
      target.part_bytes == 0 ? target.max_storage_range : std::min(target.max_storage_range, target.part_bytes);
  const bool takes = groups <= most_groups && bytes <= most_bytes;
  if (!takes) {
    MESSAGE("skipped: takes " << groups << " workgroups and bindings of " << bytes << " bytes, and the device has "
                              << most_groups << " and " << most_bytes);
  }
  return takes;
}

std::vector<plan::Target> targets() {
  const plan::Target target = context().target();
  if (!target.cpu) return {target};
  plan::Target gpu = target;
  gpu.cpu = false;
  gpu.float16.words = false;
  gpu.float16.arithmetic =
      target.float16.storage == plan::Storage16::native && context().capabilities().float16_arithmetic;
  gpu.wanted_groups = std::max(target.wanted_groups, 16U);
  if (every_variant() || target.float16.storage == plan::Storage16::packed) return {target, gpu};
  // GPUs store f16 natively, and HALFSTEP_TIER=native tests that.
  return {context().settings().tier == "native" ? gpu : target};
}

std::vector<plan::Target> product_targets() {
  std::vector<plan::Target> all = targets();
  const plan::Target target = all.front();
  if (!target.cpu) return all;
  if (target.max_texels > 0) {
    all.push_back(target);
    all.back().max_texels = 0;
  }
  if (context().capabilities().buffer_address && !target.uniform_loads) {
    all.push_back(target);
    all.back().uniform_loads = true;
  }
  return all;
}

}  // namespace halfstep::testing
