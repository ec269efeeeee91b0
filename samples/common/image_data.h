#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>

#include "samples/common/data.h"

namespace samples {

/// Whether `folder` has a subfolder of images for each class, or one called train that has them.
bool is_image_folder(const std::filesystem::path& folder);

/// Reads a folder of images, by class: what is in train to train on, and what is in val, valid, validation or test to
/// test on, the first of them that there is. Where there is none, a share of each class is drawn to test on; where
/// there is no train, the subfolders are the classes. What is drawn depends on the seed: where the flags resume a
/// checkpoint, on that checkpoint's. --limit draws too. Prints a warning for each file or class that is left out.
/// Throws Error where there are no images to train on or to test on, or the checkpoint has other classes.
Data read_image_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images);

}  // namespace samples
