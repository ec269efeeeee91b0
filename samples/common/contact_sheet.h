#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "samples/common/classifier.h"

namespace samples {

/// Writes a PNG file with a card for each image: the image as the model sees it, its name, and its most likely classes,
/// each with a bar proportional to its probability. `guesses` has the classes of each of `images`, the most likely
/// first. Returns the file's width and height.
std::pair<int, int> write_contact_sheet(const std::filesystem::path& path, const halfstep::Dataset& images,
                                        const std::vector<std::string>& names,
                                        const std::vector<std::vector<Guess>>& guesses);

}  // namespace samples
