#pragma once

#include <cstdint>
#include <map>

#include "vk/optimize/module.h"

/// Each takes a module whose functions have no block that cannot be reached, but for merge blocks and continue targets
/// of constructs, and leaves such a one. None changes what the module computes, nor the order in which it does.
namespace halfstep::vk::ir {

/// Specialization constants by their numbers.
using Constants = std::map<std::uint32_t, std::uint32_t>;

/// Makes constants of specialization constants, with these values or the module's own, and of what follows from them.
void freeze(Module& module, const Constants& constants);

/// Puts the code of functions in the place of their calls in `function`; returns whether there was one. Calls stay of
/// functions that return out of a loop or a switch.
bool inline_calls(Module& module, Function& function);

/// Makes values of variables: of a function, or private and used in no other. Arrays and structures are taken apart if
/// constants index them. Those stay whose address is used otherwise, and matrices of matrix units.
void promote(Module& module, Function& function);

/// Finds values that are constant on all ways that can be taken, and puts constants in their place; as Wegman and
/// Zadeck do (sparse conditional constant propagation).
void propagate(Module& module, Function& function);

/// Makes plain branches of those on constants and removes blocks that cannot be reached, and constructs of which
/// nothing is left.
void remove_branches(Module& module, Function& function);

/// Writes the rounds of loops one after the other, where the shader asks for that and the number of rounds is known. Of
/// loops in each other only the innermost; returns whether there was one.
bool unroll(Module& module, Function& function);

/// Joins blocks with those that always follow, and only they do.
void join_blocks(Function& function);

/// Puts something simpler in the place of values: constants, parts of composites, and values that were computed before.
void simplify(Module& module, Function& function);

/// Makes selects of phis that choose, after a selection, between values from before it; where that leaves nothing of a
/// selection but a few cheap instructions, those are computed before it. Returns whether there was one. SwiftShader's
/// compiler takes time and memory that double with each selection of a loop.
bool select(Module& module, Function& function);

/// Removes functions that no entry point calls.
void remove_functions(Module& module);
/// Removes instructions whose results are not used.
void remove_values(Function& function);
/// Removes types, constants, variables, names and decorations that nothing uses.
void remove_globals(Module& module);

}  // namespace halfstep::vk::ir
