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
  const char* folder;  ///< its location unless --data names another
  /// Parts of names, one of which each of its files has.
  std::vector<std::string> marks;
  /// Null if its samples are no images.
  halfstep::Dataset (*read)(const std::filesystem::path& folder, halfstep::Split split, std::uint32_t classes);
};

extern const DataSource fashion_mnist;  ///< or any other set of IDX files
extern const DataSource cifar10;
extern const DataSource tweets;     ///< its files are read by read_text_data()
extern const DataSource text_file;  ///< one file, read by read_text()

/// Whether a file that exists is one of those, or an image, in the folder of the data set that the flags ask for.
bool is_data_file(const CommonOptions& options, const std::filesystem::path& file);
/// Whether the flags ask for a folder of images (see is_image_folder), as there are no such files.
bool reads_image_folder(const CommonOptions& options);

/// The names of the classes of the set of files that the flags ask for; where they are not known, numbers.
std::vector<std::string> class_names(const CommonOptions& options, std::uint32_t classes);

/// The training and the test split of a data set.
struct Data {
  halfstep::Dataset train;
  halfstep::Dataset test;
  std::vector<std::string> classes{};  ///< their names, indexed by label
};

/// How a folder of images is read as a data set.
struct ImageOptions {
  halfstep::Shape shape{};  ///< {height, width, channels} that every image is resized to
  double test_share = 0.2;  ///< fraction of each class held out as the test set, if the folder has no test split
  halfstep::CorruptFiles corrupt = halfstep::CorruptFiles::refuse;
};

/// Reads the data set that the flags select: files of the program's own format or, if there are none, a folder of
/// images (see is_image_folder). The labels of files are below `classes`, or below 10. A folder of images has any
/// number of classes, or exactly `classes` if given. Throws Error if there is no such set, or the splits differ in
/// shape.
Data read_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images,
               std::optional<std::uint32_t> classes = {});

}  // namespace samples
