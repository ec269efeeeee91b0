#include "run/runtime.h"

namespace halfstep::run {

Runtime::Runtime(const Device& on, bool reproducible)
    : device(on),
      target(reproducible ? plan::reproducible(vk::context_of(on).target()) : vk::context_of(on).target()),
      pipelines(vk::context_of(on)),
      timeline(vk::context_of(on)) {}

}  // namespace halfstep::run
