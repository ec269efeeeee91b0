#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

/// How Trainer::load_weights reads a file that another program or model may have written.
struct LoadOptions {
  /// If true, a name that is missing, unexpected or has another shape is an error. If false, every tensor that matches
  /// is loaded.
  bool strict = true;
  /// Patterns (see matches()) of names that are neither loaded nor reported as missing or unexpected. What a file of
  /// Trainer::save has beside each weight, its average and the optimizer's states, and what else has a name that begins
  /// with "halfstep.", needs no pattern: it is not the model's, and is not reported.
  std::vector<std::string> ignored{"*.num_batches_tracked"};
  /// Other names that files give a tensor of this name, such as an older program's: the first that the file has is read
  /// if it has none of the model's own name. Empty: none.
  std::function<std::vector<std::string>(const std::string& name)> other_names{};
};

/// The names in a file compared with the names in a model.
struct LoadReport {
  std::vector<std::string> loaded;      ///< names as in the file, here and below
  std::vector<std::string> missing;     ///< in the model, but not in the file
  std::vector<std::string> unexpected;  ///< in the file, but not in the model
  std::vector<std::string> mismatched;  ///< "NAME: expected ..., got ..."
  std::vector<std::string> not_finite;  ///< loaded, but NaN or infinite in part, as operators read them
};

/// One tensor of a safetensors file, with the range of its values.
struct HALFSTEP_API TensorSummary {
  std::string name{};
  std::string dtype{};  ///< as written in the file: "F32", "BF16", "I64"
  Shape shape{};
  /// Of the finite values; NaN if there are none. Not computed, and NaN, of floats of 4 and 6 bits and complex numbers.
  double minimum = std::numeric_limits<double>::quiet_NaN();
  double maximum = std::numeric_limits<double>::quiet_NaN();  ///< likewise
  std::int64_t not_finite = 0;  ///< number of values that are infinite or NaN; 0 of types whose range is not computed
};

/// The contents of a safetensors file.
struct CheckpointSummary {
  std::map<std::string, std::string> metadata{};
  std::vector<TensorSummary> tensors{};  ///< in the order of their data in the file
};

/// Reads a whole safetensors file, of any element type. Throws Error if the file violates the format. The error names
/// the file, and the tensor if it concerns one.
HALFSTEP_API CheckpointSummary summarize_checkpoint(const std::filesystem::path& path);

/// Throws Error that names `file` if `metadata`, which was read from it, declares a newer format than this version
/// supports. Files of other programs, whose metadata declares no Halfstep format, are accepted.
HALFSTEP_API void check_format(const std::map<std::string, std::string>& metadata, std::string_view file);

/// A snapshot of a trainer's state in host memory; see Trainer::checkpoint(). Copies share the data. All members of
/// one that was moved from throw Error.
class HALFSTEP_API Checkpoint {
 public:
  struct Contents;
  explicit Checkpoint(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

  /// Writes the snapshot atomically as a safetensors file. Blocks until the data is on disk. May be called from any
  /// thread while training continues. Throws Error if the file cannot be written.
  void write(const std::filesystem::path& path) const;

  const Contents& contents() const;

 private:
  std::shared_ptr<const Contents> contents_;
};

/// The position at which a trainer continues after it loaded a checkpoint.
struct ResumePoint {
  std::uint64_t step = 0;       ///< steps attempted so far
  std::int64_t epoch = 0;       ///< whole epochs of the training set so far; 0 if there is no training set
  std::int64_t epoch_step = 0;  ///< steps into the current epoch, counted in batches of the present size
};

}  // namespace halfstep
