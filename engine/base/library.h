#pragma once

#include <initializer_list>

namespace halfstep::process {

/// Any function of a shared library; cast it to its real type.
using Function = void (*)();

/// The function `symbol` of the first of `libraries` that this machine has; null if it has none of them, or that one
/// has no such function. The library stays loaded until the process ends. Reads files.
Function find_function(std::initializer_list<const char*> libraries, const char* symbol);

/// Whether this process has loaded one of `libraries`, by whomever. Loads nothing.
bool has_loaded(std::initializer_list<const char*> libraries);

}  // namespace halfstep::process
