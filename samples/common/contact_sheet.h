#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <vector>

namespace samples {

/// A class, and how probable a model finds it.
struct Guess {
  std::string name;
  double probability = 0;
};

/// Writes a PNG file with a card for each image: the image as the model sees it, its file's name, and its likeliest
/// classes, each with a bar as long as it is probable. `guesses` are the likeliest first, for each of `images`.
void write_contact_sheet(const std::filesystem::path& path, const halfstep::ImageFolder& images,
                         const std::vector<std::vector<Guess>>& guesses);

}  // namespace samples
