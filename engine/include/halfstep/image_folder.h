#pragma once

#include <halfstep/data.h>
#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace halfstep {

/// What becomes of image files that cannot be decoded.
enum class CorruptFiles : std::uint8_t { refuse, skip };

/// How a folder of images becomes a Dataset.
struct ImageFolderOptions {
  std::int64_t height = 224;  ///< of every sample, in pixels
  std::int64_t width = 224;
  std::int64_t channels = 3;  ///< 3: red, green and blue; 1: grey
  CorruptFiles corrupt = CorruptFiles::refuse;
  unsigned threads = 0;  ///< that decode files; 0: as many as the machine has
};

/// A folder of images, read.
struct ImageFolder {
  Dataset data{};
  std::vector<std::string> classes{};  ///< names of the subfolders; a label is a place in this list
  std::vector<std::string> skipped{};  ///< a line for each file left out: its path, and what is wrong with it
};

/// Reads the PNG and JPEG files (.png, .jpg, .jpeg) of `folder`, which has a subfolder for each class: classes and
/// files in the order of their names. Files are decoded by worker threads and resized on the device, bilinearly (with a
/// wider triangle where they become smaller); an image with transparency lies on black. An image more than 60 times as
/// high or wide as the samples counts as corrupt. Throws Error where there are no images, and, naming the first, where
/// some are corrupt and are not to be skipped.
ImageFolder read_image_folder(const Device& device, const std::filesystem::path& folder,
                              const ImageFolderOptions& options = {});

}  // namespace halfstep
