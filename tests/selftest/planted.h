#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::selftest {

/// A fault of a driver that is imitated by changing SPIR-V before the driver gets it, to show that the self-test finds
/// it.
struct Planted {
  std::string name;
  std::string what;
  std::string found_by;  ///< the case that must find it
};

const std::vector<Planted>& planted_faults();

/// Plants a fault in all shaders that are compiled from now on. Throws Error if there is no such fault.
void plant(std::string_view name);

/// Gives the driver the words of a file in place of a kernel's: "arithmetic.exp=exp.spv". Throws Error if the file
/// cannot be read.
void replace_kernel(std::string_view replacement);

}  // namespace halfstep::selftest
