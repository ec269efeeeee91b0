#pragma once

#include <halfstep/device.h>
#include <halfstep/graph.h>

#include <cstdint>
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

/// Closes both at the end of main, so that the validation layer tells what was left on the device. It ends a process
/// that calls Vulkan later, from the destructors of static objects.
void close_device();

/// The targets that operators are lowered for: the device as it is; if it is a software driver, also a GPU-like target,
/// so that GPU kernels are tested too. A software driver with 16-bit storage has one of them: the GPU-like target with
/// HALFSTEP_TIER=native, otherwise itself; HALFSTEP_EVERY_VARIANT=1 tests both.
std::vector<plan::Target> targets();

/// The targets that differ in their GEMM kernels: these, and a software driver's without texel buffers and with uniform
/// loads.
std::vector<plan::Target> product_targets();

/// Whether a dispatch of the device, as HALFSTEP_LIMITS has it, may have so many workgroups, and a binding so many
/// bytes. Where not, says that a test skips what takes those.
bool device_takes(std::uint64_t groups, std::uint64_t bytes);

/// HALFSTEP_EVERY_VARIANT=1: checks run in every type and for every target on a software driver too.
bool every_variant();

/// Whether the device is SwiftShader, which takes seconds and gigabytes to compile large kernels.
bool on_swiftshader();

}  // namespace halfstep::testing
