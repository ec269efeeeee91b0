#pragma once

#include <optional>
#include <string>

namespace halfstep::vk {

/// What is wrong with the first damaged driver manifest among those that the loader's environment variables name:
/// "expected ..., got ..."; no value if all are valid, or none is named.
std::optional<std::string> damaged_manifest();

}  // namespace halfstep::vk
