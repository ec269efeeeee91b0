#pragma once

#include <string>
#include <vector>

#include "vk/device/capabilities.h"

namespace halfstep::vk {

/// Disables capabilities that a driver claims but does not implement correctly, and sets limits that it does not
/// report. Every such rule is in workarounds.cpp. May be applied again to capabilities that were reduced.
void apply_workarounds(Capabilities& capabilities);

/// What is not used or is limited on the device because its driver does it wrongly, for people. Of capabilities after
/// apply_workarounds().
std::vector<std::string> avoided(const Capabilities& capabilities);

/// Whether every full subgroup has Capabilities::subgroup_size invocations without requesting it.
bool subgroup_size_is_fixed(const Capabilities& capabilities);

/// Whether shaders read a quad faster from a texel buffer than from a storage buffer.
bool reads_texels_faster(const Capabilities& capabilities);
/// Whether gl_LocalInvocationID costs more than it does to compute it from the numbers of subgroups.
bool divides_for_local_ids(const Capabilities& capabilities);
/// Whether shaders load and store two words faster as one number, and the device is opened with 64-bit integers.
bool moves_pairs_faster(const Capabilities& capabilities);

/// Whether matrix units read their operands fastest where rows of A and columns of B lie along k.
bool reads_matrices_along_k(const Capabilities& capabilities);

/// Whether a load from an address that is equal in all invocations is executed once, not once per invocation.
bool loads_uniforms_once(const Capabilities& capabilities);

/// Whether its conversion from f32 to f16 gives the bits that shaders/storage/f16.glsl does, in less time.
bool rounds_to_half_well(const Capabilities& capabilities);

}  // namespace halfstep::vk
