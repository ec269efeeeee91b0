#pragma once

#include "plan/dispatch.h"
#include "vk/device/context.h"
#include "vk/shader/specialize.h"

namespace halfstep::vk {

/// Throws Error that names the dispatch unless its kernel, which an application brought, is valid SPIR-V, needs only
/// what the device is opened with, takes workgroup, constants and bindings for what a dispatch gives, and stores narrow
/// types as that says. Drivers check none of that: they crash, or compute something else.
void check_application_kernel(const plan::Dispatch& dispatch, const Constants& constants, const Context& context);

}  // namespace halfstep::vk
