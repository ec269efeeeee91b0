#pragma once

#include <span>

#include "vk/optimize/module.h"

namespace halfstep::vk::ir {

/// Whether such an instruction is a type, constant or variable of a module; or comes before those.
bool is_global(std::uint32_t opcode);
bool is_preamble(std::uint32_t opcode);

/// Whether a module, but for these globals still without any, is what Module promises.
bool is_well_formed(const Module& module, std::span<const Instruction> globals);

}  // namespace halfstep::vk::ir
