#pragma once

#include <string>
#include <string_view>

#include "plan/target.h"
#include "vk/device/capabilities.h"

namespace halfstep::tune {

/// Part of the keys of notes: counts up where operators give the same kernel other constants or workgroups, where
/// ops::checks() change, and where choices are timed in another way.
constexpr int checks_revision = 1;

/// The key of a note about kernels, as a device compiles them for `target`: who rounds to f16, and a checksum of all
/// else that makes a kernel of one name other code, or that leaves other kernels to choose from. That is what an
/// application promised of its device, limits, tiers of storage, and revisions of the library's code; a device, its
/// driver build and the library's shaders have a file of notes of their own.
std::string note_key(std::string_view about, const vk::Capabilities& capabilities, const plan::Target& target);

}  // namespace halfstep::tune
