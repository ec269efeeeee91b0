#pragma once

#include <halfstep/device.h>
#include <halfstep/graph.h>

#include <memory>
#include <vector>

#include "graph/ir.h"
#include "plan/target.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::testing {

/// The device that all tests of a process share: HALFSTEP_DEVICE's, or the default one.
const Device& device();
inline vk::Context& context() {
  return vk::context_of(device());
}

/// A graph whose types no precision policy will change.
inline Graph settled_graph() {
  return graph::Access::graph(std::make_shared<graph::Ir>(graph::Types::settled));
}

/// Pipelines that all checks share, so that each is compiled once.
std::shared_ptr<vk::Pipelines> pipelines();

/// The targets that operators are lowered for: the device as it is; if it is a software driver, also a GPU-like target,
/// so that GPU kernels are tested too; and without texel buffers if the device uses them.
std::vector<plan::Target> targets();

}  // namespace halfstep::testing
