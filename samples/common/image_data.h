#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>

#include "samples/common/data.h"

namespace samples {

/// Whether `folder` has one subfolder of images per class, or a subfolder "train" that does.
bool is_image_folder(const std::filesystem::path& folder);

/// Whether what is written into `folder` would count among the images by class, or `folder` as a class.
bool is_class_folder(const CommonOptions& options, const std::filesystem::path& folder);

/// Reads a folder of images by class. Training images are in "train"; test images are in the first that exists of
/// "val", "valid", "validation" and "test". If there is none, a random fraction of each class is held out as the test
/// set. If there is no "train", the subfolders are the classes. The draw depends on the seed, or on the checkpoint's
/// seed if the flags resume one, and on the paths inside the folder: a file that is added or removed puts no more than
/// one other of its class into the other set. --limit also draws at random. Prints a warning for each skipped file or
/// class. Throws Error if there are no images to train on or to test on, or the checkpoint has other classes.
Data read_image_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images);

}  // namespace samples
