#pragma once

#include <halfstep/device.h>

#include <memory>
#include <vector>

#include "plan/target.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::testing {

/// The device that all tests of a process share: HALFSTEP_DEVICE's, or the default one.
const Device& device();
inline vk::Context& context() {
  return device().context();
}

/// Pipelines that all checks share, so that each is compiled once.
std::shared_ptr<vk::Pipelines> pipelines();

/// What operators are lowered for: the device as it is, and, where it is a software one, the device as if it were a
/// GPU, so that kernels for those are tested too; and without texel buffers where it has a use for them.
std::vector<plan::Target> targets();

}  // namespace halfstep::testing
