#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <map>
#include <string>

namespace bench {

/// A model that whole steps are measured on.
struct Model {
  halfstep::Shape image{28, 28, 1};  ///< of one sample
  /// Logits of ten classes; `layers` counts the dense ones of the model that has nothing else.
  halfstep::Tensor (*logits)(const halfstep::Scope& scope, halfstep::Tensor images, std::int64_t layers) = nullptr;
};

/// By their names on the command line.
const std::map<std::string, Model>& models();

}  // namespace bench
