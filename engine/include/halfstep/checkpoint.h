#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

/// How Trainer::load_weights takes another's file.
struct LoadOptions {
  /// Whether a name that is missing, unexpected or of another shape is an error. Otherwise what fits is loaded.
  bool strict = true;
  /// Patterns (see matches()) of names that are neither loaded nor missed.
  std::vector<std::string> ignored{"*.num_batches_tracked", "halfstep.*",      "*.momentum",
                                   "*.first_moment",        "*.second_moment", "*.average"};
};

/// What a file had and a model wanted.
struct LoadReport {
  std::vector<std::string> loaded;      ///< names as in the file, here and below
  std::vector<std::string> missing;     ///< the model has them, the file does not
  std::vector<std::string> unexpected;  ///< the file has them, the model does not
  std::vector<std::string> mismatched;  ///< "NAME: expected ..., got ..."
  std::vector<std::string> not_finite;  ///< loaded, with numbers that are NaN or infinite
};

/// One tensor of a safetensors file, and what its values are like.
struct HALFSTEP_API TensorSummary {
  std::string name{};
  std::string dtype{};  ///< as in the file: "F32", "BF16", "I64"
  Shape shape{};
  double minimum = std::numeric_limits<double>::quiet_NaN();  ///< of the finite values; NaN where there are none
  double maximum = std::numeric_limits<double>::quiet_NaN();  ///< likewise
  std::int64_t not_finite = 0;                                ///< values that are infinite or NaN
};

/// What a safetensors file holds.
struct CheckpointSummary {
  std::map<std::string, std::string> metadata{};
  std::vector<TensorSummary> tensors{};  ///< in the order of their bytes in the file
};

/// Reads a whole safetensors file, of any element type. Throws Error that names the file, and the tensor where there is
/// one, for anything that the format does not allow.
HALFSTEP_API CheckpointSummary summarize_checkpoint(const std::filesystem::path& path);

/// Throws Error that names `file` where `metadata`, read from it, says that it has a newer format than this version
/// knows. Another program's file, whose metadata names no format of Halfstep, is fine.
HALFSTEP_API void check_format(const std::map<std::string, std::string>& metadata, std::string_view file);

/// A trainer's state in host memory, copied off the device; see Trainer::checkpoint(). Copies share it.
class HALFSTEP_API Checkpoint {
 public:
  struct Contents;
  explicit Checkpoint(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

  /// Writes it as a safetensors file, whole or not at all. Blocks until the disk has it. May be called from any thread
  /// while the trainer goes on. Throws Error where the file cannot be written.
  void write(const std::filesystem::path& path) const;

 private:
  std::shared_ptr<const Contents> contents_;
};

/// Where a trainer that continues from a checkpoint stands.
struct ResumePoint {
  std::uint64_t step = 0;       ///< steps attempted so far
  std::int64_t epoch = 0;       ///< whole epochs of the training set so far; 0 where there is no set
  std::int64_t epoch_step = 0;  ///< steps of the epoch after these, in batches of the present size
};

}  // namespace halfstep
