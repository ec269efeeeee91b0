#pragma once

#include <halfstep/halfstep.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

/// A model by its name in checkpoints, on `images` {n, h, w, c}: lenet5, fashion_conv, fashion_cnn, resnet8 to resnet56
/// (6N + 2), resnet18, resnet34, resnet50 or mobilenet_v2; the last four have the small stem for images of 32. Returns
/// logits {n, classes}. Throws Error for any other name.
halfstep::Tensor build_model(const halfstep::Scope& scope, halfstep::Tensor images, const std::string& name,
                             std::int64_t classes);

/// A checkpoint's description of its model; see Trainer::save.
struct ModelDescription {
  std::string name;
  halfstep::Shape input;  ///< of an image: {height, width, channels}
  std::vector<float> mean;
  std::vector<float> stddev;
  std::vector<std::string> classes;
};

/// Throws Error that names the file if its metadata is incomplete.
ModelDescription describe_model(const halfstep::CheckpointSummary& summary, const std::string& file);

}  // namespace samples
