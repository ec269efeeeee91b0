#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <vector>

namespace samples {

/// A class and its predicted probability.
struct Guess {
  std::string name;
  double probability = 0;
};

/// Writes a PNG file with a card for each image: the image as the model sees it, its file's name, and its most likely
/// classes, each with a bar proportional to its probability. `guesses` has the classes of each of `images`, the most
/// likely first.
void write_contact_sheet(const std::filesystem::path& path, const halfstep::ImageFolder& images,
                         const std::vector<std::vector<Guess>>& guesses);

}  // namespace samples
