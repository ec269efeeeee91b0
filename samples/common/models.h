#pragma once

#include <halfstep/halfstep.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

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
