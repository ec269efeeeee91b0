#include "harness/device.h"

#include <algorithm>
#include <cstdlib>

namespace halfstep::testing {

const Device& device() {
  static const Device shared = Device::open();
  return shared;
}

std::shared_ptr<vk::Pipelines> pipelines() {
  static const auto shared = std::make_shared<vk::Pipelines>(context());
  return shared;
}

bool every_variant() {
  static const bool wanted = std::getenv("HALFSTEP_EVERY_VARIANT") != nullptr;
  return wanted;
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
