#pragma once

#include <cstdint>

namespace halfstep::process {

/// Vector registers of this machine's processor that a compiler may use: x86-64 has 16, and 32 with AVX-512; others
/// have 32.
std::uint32_t vector_registers();

}  // namespace halfstep::process
