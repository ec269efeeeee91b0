#pragma once

#include <halfstep/data.h>
#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// What to do about image files that cannot be decoded and about classes without images.
enum class CorruptFiles : std::uint8_t { refuse, skip };

/// How image files are converted to a Dataset. Other sizes and channels than these are an Error.
struct ImageFolderOptions {
  std::int64_t height = 224;  ///< of every sample, in pixels: 1 to 8192
  std::int64_t width = 224;   ///< likewise
  std::int64_t channels = 3;  ///< 3: RGB; 1: grey
  CorruptFiles corrupt = CorruptFiles::refuse;
  unsigned threads = 0;  ///< threads that decode files; 0: one per hardware thread
};

/// The image files of a folder with one subfolder per class.
struct ImageFiles {
  std::filesystem::path folder{};
  std::vector<std::filesystem::path> files{};
  std::vector<std::uint32_t> labels{};  ///< of each file: an index into `classes`
  std::vector<std::string> classes{};   ///< names of the subfolders
};

/// Whether a file is an image by its extension: .png, .jpg or .jpeg, in any case.
HALFSTEP_API bool has_image_name(const std::filesystem::path& file);

/// Lists the PNG and JPEG files (by extension) of `folder`, which has one subfolder per class. Sorted by the name of
/// the class, then by path. Nested subfolders of a class belong to it. Symbolic links are followed; names that begin
/// with a dot are skipped. Throws Error if there are no images. Also throws Error, naming the class, if a class has
/// none, unless `corrupt` is CorruptFiles::skip.
HALFSTEP_API ImageFiles list_image_folder(const std::filesystem::path& folder,
                                          CorruptFiles corrupt = CorruptFiles::refuse);
/// Likewise, but with the classes of another folder, for test samples. Some of those classes may be missing here or
/// have no images. Throws Error if there are no images, or if there is a subfolder of another name.
HALFSTEP_API ImageFiles list_image_folder(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// Decoded image files.
struct ImageFolder {
  Dataset data{};
  std::vector<std::filesystem::path> files{};  ///< of each sample
  std::vector<std::string> classes{};          ///< a label is an index into this list
  std::vector<std::string> skipped{};          ///< one line, as an Error's, for each skipped file: its path and why
  std::vector<std::string> empty_classes{};    ///< those of `classes` that have no sample
};

/// Decodes the files on worker threads, applies their EXIF orientation, and resizes them on the device, bilinearly
/// (with a wider triangle filter when shrinking), to the same bytes on every device. The numbers of a file are used as
/// they are, whatever gamma or colour profile it claims; 16 bits are scaled to 8. Transparent images are blended onto
/// black. An image that is too large to be resized counts as corrupt: the device cannot bind its bytes, or its height
/// times the samples' width times 16 bytes; or it is more than 8,190 times as high or wide as the samples, on a driver
/// that ends loops after 65,535 rounds. Throws Error, naming the first, if some files are corrupt and must not be
/// skipped, or if all are. Throws Error if the labels do not fit the files and classes.
HALFSTEP_API ImageFolder read_images(const Device& device, const ImageFiles& files,
                                     const ImageFolderOptions& options = {});

/// Calls list_image_folder(), then read_images().
HALFSTEP_API ImageFolder read_image_folder(const Device& device, const std::filesystem::path& folder,
                                           const ImageFolderOptions& options = {});

/// Likewise for any list of files, regardless of their extension. All labels are 0 and there are no class names.
/// Returns an empty set if all files are skipped.
HALFSTEP_API ImageFolder read_images(const Device& device, std::span<const std::filesystem::path> files,
                                     const ImageFolderOptions& options = {});

/// An image in host memory.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels{};  ///< RGB {height, width, 3}, row-major
};

/// Decodes a PNG or JPEG file in its own size, with its EXIF orientation applied, as read_images() does. Throws Error
/// if the file cannot be read or decoded, or has more than 2^26 pixels.
HALFSTEP_API Image read_image(const std::filesystem::path& file);

/// Writes rows of RGB bytes, {height, width, 3}, atomically as a PNG file. Throws Error if the file cannot be written,
/// if the height or width is not from 1 to 65,535, or if the number of bytes does not match the shape.
HALFSTEP_API void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                            std::int64_t height, std::int64_t width);

}  // namespace halfstep
