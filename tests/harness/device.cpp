#include "harness/device.h"

#include <algorithm>

namespace halfstep::testing {

const Device& device() {
  static const Device shared = Device::open();
  return shared;
}

std::shared_ptr<vk::Pipelines> pipelines() {
  static const auto shared = std::make_shared<vk::Pipelines>(context());
  return shared;
}

std::vector<plan::Target> targets() {
  const plan::Target target = context().target();
  // The GPU-like target stores f16 natively whatever the tier: with HALFSTEP_TIER=native it would be tested twice.
  if (!target.cpu || context().settings().tier == "native") return {target};
  plan::Target gpu = target;
  gpu.cpu = false;
  gpu.words16 = false;
  gpu.wanted_groups = std::max(target.wanted_groups, 16U);
  return {target, gpu};
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
