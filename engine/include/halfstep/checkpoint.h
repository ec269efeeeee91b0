#pragma once

#include <string>
#include <vector>

namespace halfstep {

/// How Trainer::load_weights takes another's file.
struct LoadOptions {
  /// Whether a name that is missing, unexpected or of another shape is an error. Otherwise what fits is loaded.
  bool strict = true;
  /// Patterns (see matches()) of names that are neither loaded nor missed.
  std::vector<std::string> ignored{"*.num_batches_tracked", "halfstep.state", "*.momentum", "*.first_moment",
                                   "*.second_moment"};
};

/// What a file had and a model wanted.
struct LoadReport {
  std::vector<std::string> loaded;      ///< names as in the file, here and below
  std::vector<std::string> missing;     ///< the model has them, the file does not
  std::vector<std::string> unexpected;  ///< the file has them, the model does not
  std::vector<std::string> mismatched;  ///< "NAME: expected ..., got ..."
  std::vector<std::string> not_finite;  ///< loaded, with numbers that are NaN or infinite
};

}  // namespace halfstep
