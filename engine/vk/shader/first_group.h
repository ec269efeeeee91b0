#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with workgroups that are counted along x from a number in its push constants, a u32 at byte `offset`
/// after all that it declares: gl_WorkGroupID.x is that much larger. So the workgroups of a dispatch can be submitted in
/// parts. vkCmdDispatchBase does the same, but NVIDIA's driver 580 computes wrongly with it: of a dispatch in rows of
/// workgroups only the first row was computed (H200). Throws Error if the shader declares no push constants.
std::vector<std::uint32_t> with_first_group(std::span<const std::uint32_t> words, std::uint32_t offset);

}  // namespace halfstep::vk
