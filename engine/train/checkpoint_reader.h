#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/precision.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "state/parameters.h"

namespace halfstep::train {

/// Takes a model's tensors out of a file, and keeps account of what is there and what is not.
class CheckpointReader {
 public:
  /// `overflow`: what becomes of numbers that the type operators read a weight in does not reach.
  CheckpointReader(const io::SafetensorsFile& file, const LoadOptions& options, Overflow overflow)
      : file_(file), options_(options), overflow_(overflow) {}

  /// The values of a tensor of the model; empty where the file has none that fits.
  std::vector<float> take(const std::string& models_name, const state::ParameterEntry& entry);

  /// A tensor of the model that is not needed, in the file or not.
  void pass_over(const std::string& name) { asked_.insert(name_in_file(name)); }
  /// What a checkpoint has beside its weights: what has a name of Halfstep's own; and the average and the optimizer's
  /// states of a weight have its shape, and its name with a dot and theirs, whatever rule made them.
  void pass_over_states();

  /// What was found, after everything was taken. Throws Error where the options are strict and anything differs.
  LoadReport report(std::string_view path);

 private:
  /// What the file calls a tensor of the model: one of LoadOptions::other_names, if it has none of the model's name.
  std::string name_in_file(const std::string& name) const;
  bool ignored(std::string_view name) const;
  void refuse_differences(std::string_view path) const;

  const io::SafetensorsFile& file_;
  const LoadOptions& options_;
  Overflow overflow_;
  std::set<std::string> asked_;
  LoadReport report_;
};

/// The values of a tensor that a file, which errors call `path`, has. Throws Error where they do not fit.
std::vector<float> take_present(const io::SafetensorsFile& file, std::string_view path, const std::string& name,
                                const state::ParameterEntry& entry);

}  // namespace halfstep::train
