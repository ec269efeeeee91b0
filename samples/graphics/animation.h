#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <vector>

namespace samples {

/// Writes images of one size, one after another for `seconds` each and the last for four times as long, over and over,
/// atomically as an animated PNG. Throws Error if the file cannot be written or an image cannot be encoded.
void write_animation(const std::filesystem::path& path, const std::vector<halfstep::Image>& frames, double seconds);

}  // namespace samples
