#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace samples {

struct CommonOptions;

/// A data set that samples train on.
struct DataSource {
  const char* help;    ///< what --data names
  const char* folder;  ///< where it lies unless --data says otherwise
  const char* mark;    ///< is in the name of some of its files
  halfstep::Dataset (*read)(const std::filesystem::path& folder, halfstep::Split split, std::uint32_t classes);
};

extern const DataSource fashion_mnist;  ///< or any other set of IDX files
extern const DataSource cifar10;

/// The names of the classes of the set of files that the flags ask for; where they are not known, numbers.
std::vector<std::string> class_names(const CommonOptions& options, std::uint32_t classes);

/// Both halves of a data set.
struct Data {
  halfstep::Dataset train;
  halfstep::Dataset test;
  std::vector<std::string> classes{};  ///< their names, one for each label
};

/// How a folder of images becomes a data set.
struct ImageOptions {
  halfstep::Shape shape{};  ///< {height, width, channels} that every image is resized to
  double test_share = 0.2;  ///< of each class's images, to test on where the folder has no part for that
  halfstep::CorruptFiles corrupt = halfstep::CorruptFiles::refuse;
};

/// Reads the set that the flags ask for: files of the program's own kind, or, where there are none, a folder of images
/// (see is_image_folder). Files have labels below `classes`, or 10; a folder of images has any number of classes, or
/// `classes` where that is given. Throws Error where there is no such set, or the halves differ in shape.
Data read_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images,
               std::optional<std::uint32_t> classes = {});

}  // namespace samples
