#pragma once

#include <halfstep/data.h>
#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// What becomes of image files that cannot be decoded, and of classes without images.
enum class CorruptFiles : std::uint8_t { refuse, skip };

/// How image files become a Dataset.
struct ImageFolderOptions {
  std::int64_t height = 224;  ///< of every sample, in pixels
  std::int64_t width = 224;
  std::int64_t channels = 3;  ///< 3: red, green and blue; 1: grey
  CorruptFiles corrupt = CorruptFiles::refuse;
  unsigned threads = 0;  ///< that decode files; 0: as many as the machine has
};

/// Image files of a folder with a subfolder for each class.
struct ImageFiles {
  std::filesystem::path folder{};
  std::vector<std::filesystem::path> files{};
  std::vector<std::uint32_t> labels{};  ///< of each file: a place in `classes`
  std::vector<std::string> classes{};   ///< names of the subfolders
};

/// Whether a file is an image by its name: .png, .jpg or .jpeg, in small or capital letters.
HALFSTEP_API bool has_image_name(const std::filesystem::path& file);

/// Lists the PNG and JPEG files, by their names, of `folder`, which has a subfolder for each class, by class and
/// path in the order of the names. Subfolders of a class belong to it. Links are followed; names that begin with a dot
/// are left out. Throws Error where there are no images, and, naming the class, where one has none and
/// CorruptFiles::skip does not accept that.
HALFSTEP_API ImageFiles list_image_folder(const std::filesystem::path& folder,
                                          CorruptFiles corrupt = CorruptFiles::refuse);
/// The same with the classes of another folder, of which some may be missing here or have no images: for samples to
/// test on. Throws Error where there are no images, or there is a subfolder of another name.
HALFSTEP_API ImageFiles list_image_folder(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// Image files, read.
struct ImageFolder {
  Dataset data{};
  std::vector<std::filesystem::path> files{};  ///< of each sample
  std::vector<std::string> classes{};          ///< a label is a place in this list
  std::vector<std::string> skipped{};          ///< a line for each file left out: its path, and what is wrong with it
  std::vector<std::string> empty_classes{};    ///< those of `classes` that no sample is of
};

/// Decodes the files by worker threads, turned as their EXIF orientation says, and resizes them on the device,
/// bilinearly (with a wider triangle where they become smaller); an image with transparency lies on black. An image
/// that is too large to be resized counts as corrupt: one whose bytes, or whose height times the samples' width times
/// 16 bytes, the device cannot bind, or one more than 8,190 times as high or wide as the samples on a driver that ends
/// loops after 65,535 rounds. Throws Error, naming the first, where some are corrupt and are not to be skipped, or all
/// are; and where the labels do not fit the files and classes.
HALFSTEP_API ImageFolder read_images(const Device& device, const ImageFiles& files,
                                     const ImageFolderOptions& options = {});

/// read_images() of list_image_folder().
HALFSTEP_API ImageFolder read_image_folder(const Device& device, const std::filesystem::path& folder,
                                           const ImageFolderOptions& options = {});

/// Reads these files alike, whatever they are called; all labels are 0 and there are no names of classes. Gives an
/// empty set where all are skipped.
HALFSTEP_API ImageFolder read_images(const Device& device, std::span<const std::filesystem::path> files,
                                     const ImageFolderOptions& options = {});

/// Writes rows of red, green and blue bytes, {height, width, 3}, as a PNG file, whole or not at all. Throws Error where
/// it cannot be written, or there are not as many bytes as pixels ask for.
HALFSTEP_API void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                            std::int64_t height, std::int64_t width);

}  // namespace halfstep
