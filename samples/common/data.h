#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace samples {

struct CommonOptions;

/// A data set that samples train on.
struct DataSource {
  const char* help;    ///< what --data names
  const char* folder;  ///< where it lies unless --data says otherwise
  halfstep::Dataset (*read)(const std::filesystem::path& folder, halfstep::Split split, std::uint32_t classes);
};

extern const DataSource fashion_mnist;  ///< or any other set of IDX files
extern const DataSource cifar10;

/// The names of the classes of the set that the flags ask for; where they are not known, numbers.
std::vector<std::string> class_names(const CommonOptions& options, std::uint32_t classes);

/// Both halves of a data set.
struct Data {
  halfstep::Dataset train;
  halfstep::Dataset test;
};

/// Reads the set that the flags ask for; its labels are below `classes`. Throws Error where there is none, or the
/// halves differ in shape.
Data read_data(const CommonOptions& options, std::uint32_t classes);

}  // namespace samples
