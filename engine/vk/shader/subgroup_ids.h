#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with gl_LocalInvocationID made of the subgroup's number, its size and the invocation's number in it: for
/// workgroups of whole subgroups along x. Each invocation of a workgroup has a number of its own, as before, though a
/// driver may order them otherwise.
std::vector<std::uint32_t> with_subgroup_ids(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
