#pragma once

#include <cstdint>

namespace halfstep::process {

/// Bytes of memory that this machine has; 0 if it does not say.
std::uint64_t host_memory();

}  // namespace halfstep::process
