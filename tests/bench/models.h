#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <map>
#include <string>

namespace bench {

/// A model for measurements of whole steps.
struct Model {
  halfstep::Shape image{28, 28, 1};  ///< of one sample
  /// Logits of ten classes; `layers` is the number of dense layers, for the mlp only.
  halfstep::Tensor (*logits)(const halfstep::Scope& scope, halfstep::Tensor images, std::int64_t layers) = nullptr;
};

/// The models by their names on the command line.
const std::map<std::string, Model>& models();

}  // namespace bench
