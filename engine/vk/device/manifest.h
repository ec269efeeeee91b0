#pragma once

#include <optional>
#include <string>

namespace halfstep::vk {

/// What is wrong with the first damaged one of the drivers' manifests that the loader's environment variables name:
/// "expected ..., got ..."; nothing where all are sound, or none is named.
std::optional<std::string> damaged_manifest();

}  // namespace halfstep::vk
