#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace halfstep::vk {

struct Capabilities;

/// Limits that a device is told to have in place of its own, by the names that limits.cpp lists. For tests: a driver
/// with ample limits then runs what one with small ones would.
using Limits = std::map<std::string, std::uint64_t, std::less<>>;

/// The limits of a text such as "invocations=128,shared_memory=16384"; none if it is empty. Throws Error for a name
/// that is not listed, a value that is no number or less than the engine can work with, and a name that comes twice.
Limits limits_from(const std::string& text);

/// Lowers the capabilities to `limits`. Throws Error if the device has less than one of them, or no subgroups of a
/// size.
void lower_limits(Capabilities& capabilities, const Limits& limits);

}  // namespace halfstep::vk
