#pragma once

#include "vk/device/capabilities.h"

namespace halfstep::vk {

/// Takes back what a driver claims and does not keep. Every such rule lives in workarounds.cpp.
void apply_workarounds(Capabilities& capabilities);

/// Whether every full subgroup has Capabilities::subgroup_size invocations with no need to ask for it.
bool subgroup_size_is_fixed(const Capabilities& capabilities);

/// Whether shaders read a quad faster from a texel buffer than from a storage buffer.
bool reads_texels_faster(const Capabilities& capabilities);

/// Whether a load by address that is the same in every invocation takes one load, and not one for each.
bool loads_uniforms_once(const Capabilities& capabilities);

/// Whether its conversion from f32 to f16 gives the bits that shaders/storage/f16.glsl does, in less time.
bool rounds_to_half_well(const Capabilities& capabilities);

/// Loop rounds after which the driver ends the loops of an invocation, whatever their conditions say.
std::uint32_t max_loop_rounds(const Capabilities& capabilities);

}  // namespace halfstep::vk
