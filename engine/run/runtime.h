#pragma once

#include <halfstep/device.h>

#include <memory>

#include "plan/target.h"
#include "state/caches.h"
#include "state/store.h"
#include "vk/command/memory.h"
#include "vk/command/timeline.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::run {

class Slots;

/// What programs on one device share: compiled kernels, the choices that were made between them, an arena, and the
/// timeline that they run on one after the other. To be used by one thread at a time.
struct Runtime {
  /// For Precision::reproducible or not. Throws Error where the device cannot be that.
  Runtime(const Device& on, bool reproducible);

  vk::Context& context() const { return vk::context_of(device); }
  /// An arena of at least `bytes`, which other programs may use between two submits. Throws Error where there is no
  /// memory for it.
  std::shared_ptr<const vk::Buffer> shared_arena(std::uint64_t bytes) {
    if (!arena || arena->bytes() < bytes) {
      arena = std::make_shared<const vk::Buffer>(vk::Buffer::in_parts(context(), bytes, "arena"));
    }
    return arena;
  }

  Device device;
  plan::Target target;  ///< the device's, with the choices that were made
  vk::Pipelines pipelines;
  std::shared_ptr<const vk::Buffer> arena{};  ///< the newest, which is the largest
  vk::Timeline timeline;
  Slots* open = nullptr;  ///< those whose newest run is submitted in part
};

/// The weights that any number of programs share, and what these share beside them. Copies share it too.
struct Workspace {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<state::ParameterStore> store;
  std::shared_ptr<const state::Caches> caches{};  ///< of programs that have some, or null
};

}  // namespace halfstep::run
