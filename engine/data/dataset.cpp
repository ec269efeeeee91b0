#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/idx.h"

namespace halfstep {

namespace fs = std::filesystem;

void Dataset::check() const {
  const auto refuse = [&](const std::string& message) { fail("data", fmt::format("'{}': {}", name, message)); };
  if (count < 0) refuse(fmt::format("expected a count of 0 or more, got {}", count));
  const bool has_samples = fields.empty() || !samples.empty() || !sample_shape.empty();
  if (std::ranges::any_of(sample_shape, [](std::int64_t extent) { return extent < 1; })) {
    refuse(fmt::format("expected positive extents of a sample, got {}", to_string(sample_shape)));
  }
  // Compared by division, since the product of the caller's numbers may overflow.
  const auto bytes = static_cast<std::uint64_t>(sample_bytes());
  const auto wanted = static_cast<std::uint64_t>(count);
  if (has_samples && (samples.size() / bytes != wanted || samples.size() % bytes != 0)) {
    refuse(fmt::format("expected the bytes of {} samples {}, got {}", count, to_string(sample_shape), samples.size()));
  }
  const bool has_labels = fields.empty() || !labels.empty();
  if (has_labels && labels.size() != wanted) refuse(fmt::format("expected {} labels, got {}", count, labels.size()));
  const auto bad = std::ranges::find_if(labels, [&](std::uint32_t label) { return label >= classes; });
  if (bad != labels.end()) {
    refuse(
        fmt::format("expected labels below its {} classes, got {} for sample {}", classes, *bad, bad - labels.begin()));
  }
  std::set<std::string_view> names;
  for (const Field& field : all_fields()) {
    if (!names.insert(field.name).second) refuse(fmt::format("expected one field '{}', got two", field.name));
  }
  for (const Field& field : fields) field.check(count);
}

Dataset Dataset::of(std::string name, std::vector<Field> fields) {
  if (fields.empty()) fail("data", fmt::format("'{}': expected at least one field, got none", name));
  Dataset set{.name = std::move(name), .fields = std::move(fields)};
  // Windows on one text may have room for more samples than the set has.
  set.count = std::ranges::min(set.fields, {}, &Field::count).count();
  set.check();
  return set;
}

std::vector<Field> Dataset::all_fields() const {
  std::vector<Field> all;
  if (!samples.empty()) all.push_back(Field::borrow("samples", sample_shape, std::span(samples)));
  if (!labels.empty()) all.push_back(Field::borrow("labels", {}, std::span(labels), classes));
  all.insert(all.end(), fields.begin(), fields.end());
  return all;
}

Dataset Dataset::take(std::int64_t limit) const {
  check();
  if (limit <= 0) fail("data", fmt::format("expected a positive number of samples to take, got {}", limit));
  Dataset part{name, sample_shape, std::min(limit, count), classes, {}, {}, fields};
  if (!samples.empty()) part.samples.assign(samples.begin(), samples.begin() + part.count * sample_bytes());
  if (!labels.empty()) part.labels.assign(labels.begin(), labels.begin() + part.count);
  for (Field& field : part.fields) {
    const std::int64_t kept = field.first + part.count * elements(field.shape);
    if (field.stride == 0) field.data = field.data.first(static_cast<std::size_t>(kept * halfstep::bytes(field.type)));
  }
  return part;
}

namespace {

// The labels as 32-bit words for the device, checked to be below `classes`.
std::vector<std::uint32_t> checked_labels(const std::vector<std::uint8_t>& bytes, std::uint32_t classes,
                                          const fs::path& path) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [&](std::uint8_t label) { return label >= classes; });
  if (bad != bytes.end()) {
    fail(ErrorCode::bad_file, "idx",
         fmt::format("{}: expected labels below {}, got {} for sample {}", path.string(), classes, *bad,
                     bad - bytes.begin()));
  }
  return {bytes.begin(), bytes.end()};
}

// Files of `folder` for one split and one role ("images" or "labels"), without ".gz", so that a file and its gzipped
// copy count as one.
std::set<fs::path> candidates(const fs::path& folder, Split split, std::string_view role) {
  std::error_code error;
  std::set<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    const auto has = [&](std::string_view part) { return file.find(part) != std::string::npos; };
    const bool in_split = split == Split::train ? has("train") : has("t10k") || has("test");
    if (!in_split || !has(role) || !has("idx")) continue;
    found.insert(entry->path().extension() == ".gz" ? fs::path(entry->path()).replace_extension() : entry->path());
  }
  if (error)
    fail(ErrorCode::bad_file, "data", fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  return found;
}

fs::path find_file(const fs::path& folder, Split split, std::string_view role) {
  const std::set<fs::path> found = candidates(folder, split, role);
  const std::string usual =
      fmt::format("{}-{}-idx{}-ubyte", split == Split::train ? "train" : "t10k", role, role == "images" ? 3 : 1);
  if (found.empty()) {
    fail(ErrorCode::bad_file, "data",
         fmt::format("expected {0} or {0}.gz in {1}, got no such file", usual, folder.string()));
  }
  if (found.size() > 1) {
    fail(ErrorCode::bad_file, "data",
         fmt::format("expected one file like {} in {}, got {} and {}", usual, folder.string(),
                     found.begin()->filename().string(), std::next(found.begin())->filename().string()));
  }
  std::error_code error;
  return fs::exists(*found.begin(), error) ? *found.begin() : fs::path(found.begin()->string() + ".gz");
}

}  // namespace

Dataset read_idx(const fs::path& images, const fs::path& labels, std::uint32_t classes) {
  data::IdxArray samples = data::read_idx_array(images, 2, 4);
  const data::IdxArray answers = data::read_idx_array(labels, 1, 1);
  if (samples.shape[0] != answers.shape[0]) {
    fail(ErrorCode::bad_file, "idx",
         fmt::format("expected as many labels as images, got {} in {} and {} in {}", answers.shape[0], labels.string(),
                     samples.shape[0], images.string()));
  }
  Dataset data;
  data.name = images.string();
  data.count = samples.shape[0];
  data.sample_shape.assign(samples.shape.begin() + 1, samples.shape.end());
  if (data.sample_shape.size() == 2) data.sample_shape.push_back(1);
  data.classes = classes > 0 ? classes : *std::max_element(answers.bytes.begin(), answers.bytes.end()) + 1U;
  data.samples = std::move(samples.bytes);
  data.labels = checked_labels(answers.bytes, data.classes, labels);
  return data;
}

Dataset read_idx_folder(const fs::path& folder, Split split, std::uint32_t classes) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail(ErrorCode::bad_file, "data", fmt::format("expected a folder with IDX files, got {}", folder.string()),
         "Debian's package dataset-fashion-mnist has one in /usr/share/datasets/fashion-mnist");
  }
  const fs::path images = find_file(folder, split, "images");
  Dataset data = read_idx(images, find_file(folder, split, "labels"), classes);
  data.name = folder.string();
  return data;
}

}  // namespace halfstep
