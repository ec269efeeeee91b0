#include "train/checkpoint_reader.h"

#include <halfstep/error.h>
#include <halfstep/pattern.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/dtype.h"
#include "train/checkpoint_contents.h"
#include "train/stored_values.h"

namespace halfstep::train {

bool CheckpointReader::ignored(std::string_view name) const {
  return std::ranges::any_of(options_.ignored, [&](const std::string& pattern) { return matches(pattern, name); });
}

std::string CheckpointReader::name_in_file(const std::string& name) const {
  if (!options_.other_names || file_.find(name) != nullptr) return name;
  const std::vector<std::string> others = options_.other_names(name);
  const auto found =
      std::ranges::find_if(others, [&](const std::string& other) { return file_.find(other) != nullptr; });
  return found == others.end() ? name : *found;
}

std::vector<float> CheckpointReader::take(const std::string& models_name, const state::ParameterEntry& entry) {
  const std::string name = name_in_file(models_name);
  asked_.insert(name);
  if (ignored(name)) return {};
  const io::StoredTensor* tensor = file_.find(name);
  if (tensor == nullptr) {
    report_.missing.push_back(name);
    return {};
  }
  if (const auto wrong = mismatch(*tensor, entry.type.shape, entry.stored)) {
    report_.mismatched.push_back(fmt::format("{}: {}", name, *wrong));
    return {};
  }
  std::vector<float> values = decode(*tensor, entry.type.shape, entry.stored);
  report_.loaded.push_back(name);
  const DType kept = overflow_ == Overflow::saturate ? DType::f32 : entry.type.dtype;
  const auto finite = [kept](float value) { return std::isfinite(graph::stored(kept, value)); };
  if (!std::ranges::all_of(values, finite)) report_.not_finite.push_back(name);
  return values;
}

void CheckpointReader::pass_over_states() {
  for (const io::StoredTensor& tensor : file_.tensors()) {
    if (tensor.name.starts_with(reserved_prefix)) pass_over(tensor.name);
  }
  if (!is_checkpoint(file_.metadata())) return;
  std::map<std::string_view, const Shape*> shapes;
  for (const io::StoredTensor& tensor : file_.tensors()) shapes[tensor.name] = &tensor.shape;
  for (const io::StoredTensor& tensor : file_.tensors()) {
    std::string_view weight = tensor.name;
    for (std::size_t dot = weight.rfind('.'); dot != std::string_view::npos; dot = weight.rfind('.')) {
      weight = weight.substr(0, dot);
      const auto found = shapes.find(weight);
      if (found != shapes.end() && *found->second == tensor.shape) pass_over(tensor.name);
    }
  }
}

std::vector<float> take_present(const io::SafetensorsFile& file, std::string_view path, const std::string& name,
                                const state::ParameterEntry& entry) {
  const io::StoredTensor& tensor = *file.find(name);
  if (const auto wrong = mismatch(tensor, entry.type.shape, entry.stored)) {
    fail(ErrorCode::bad_file, path,
         fmt::format("expected '{}' of this model, got one that is another: {}", name, *wrong));
  }
  return decode(tensor, entry.type.shape, entry.stored);
}

LoadReport CheckpointReader::report(std::string_view path) {
  for (const io::StoredTensor& tensor : file_.tensors()) {
    if (!asked_.contains(tensor.name) && !ignored(tensor.name)) report_.unexpected.push_back(tensor.name);
  }
  if (options_.strict) refuse_differences(path);
  return report_;
}

void CheckpointReader::refuse_differences(std::string_view path) const {
  std::string text;
  const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
    constexpr std::size_t most = 8;
    if (names.empty()) return;
    text += fmt::format("{}{} {} (", text.empty() ? "" : ", ", names.size(), what);
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i > 0 ? ", " : "") + names[i];
    text += names.size() > most ? ", ...)" : ")";
  };
  list("missing", report_.missing);
  list("unexpected", report_.unexpected);
  list("mismatched", report_.mismatched);
  if (text.empty()) return;
  fail(ErrorCode::bad_file, path, "expected the tensors of this model, got " + text, "it is another model's");
}

}  // namespace halfstep::train
