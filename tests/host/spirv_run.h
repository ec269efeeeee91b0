#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vk/optimize/passes.h"

/// Runs the shader of one invocation, of integers and booleans as those of random_shader.h, and returns what it has
/// stored in its buffer. Independent of the passes: it knows instructions, and goes from one to the next.
std::vector<std::uint32_t> run_shader(std::span<const std::uint32_t> words,
                                      const halfstep::vk::ir::Constants& constants);
