#include "samples/common/image_data.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "samples/common/checkpoint.h"
#include "samples/common/command_line.h"

namespace samples {

namespace fs = std::filesystem;

using halfstep::ImageFiles;

namespace {

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    std::error_code not_followed;
    if (!hidden && entry->is_directory(not_followed)) found.push_back(entry->path());
  }
  return found;
}

bool has_images(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (halfstep::has_image_name(entry->path())) return true;
  }
  return false;
}

/// The folder of the test split; empty if there is none.
fs::path test_part(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"val", "valid", "validation", "test"}) {
    if (fs::is_directory(folder / name, error)) return folder / name;
  }
  return {};
}

/// A subset of the files, in their order.
ImageFiles chosen(const ImageFiles& files, std::vector<std::uint32_t> places) {
  std::ranges::sort(places);
  ImageFiles part{.folder = files.folder, .classes = files.classes};
  for (const std::uint32_t place : places) {
    part.files.push_back(files.files[place]);
    part.labels.push_back(files.labels[place]);
  }
  return part;
}

/// A number drawn for a file by the seed and its path in the folder.
std::uint64_t draw(const fs::path& inside, std::uint64_t seed) {
  std::uint64_t hash = seed;
  const auto mix = [&hash] { hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15; };
  for (const char c : inside.generic_string()) {
    mix();
    hash ^= static_cast<unsigned char>(c);
  }
  mix();
  mix();
  return hash;
}

/// The places of the files in an order drawn by the seed. Two files are in the same order whatever others there are.
std::vector<std::uint32_t> shuffled(const ImageFiles& files, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
  for (const fs::path& file : files.files) {
    drawn.emplace_back(draw(file.lexically_relative(files.folder), seed), static_cast<std::uint32_t>(drawn.size()));
  }
  std::ranges::sort(drawn);
  std::vector<std::uint32_t> places;
  for (const auto& [number, place] : drawn) places.push_back(place);
  return places;
}

ImageFiles limited(const ImageFiles& files, const CommonOptions& options, std::uint64_t seed) {
  if (!options.limit || std::cmp_less_equal(files.files.size(), *options.limit)) return files;
  std::vector<std::uint32_t> places = shuffled(files, seed);
  places.resize(static_cast<std::size_t>(*options.limit));
  return chosen(files, std::move(places));
}

struct Parts {
  ImageFiles train;
  ImageFiles test;
};

/// Holds out `share` of each class, but never all of it, as the test set.
Parts split(const ImageFiles& files, double share, std::uint64_t seed) {
  std::vector<std::int64_t> wanted(files.classes.size());
  for (const std::uint32_t label : files.labels) wanted[label]++;
  for (std::int64_t& count : wanted) {
    count = std::min(std::llround(share * static_cast<double>(count)), std::max<long long>(count - 1, 0));
  }
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
  for (const std::uint32_t place : shuffled(files, seed)) {
    (wanted[files.labels[place]]-- > 0 ? test : train).push_back(place);
  }
  if (test.empty()) {
    halfstep::fail(
        "data",
        fmt::format("expected images to test on, got none of {} in {}", files.files.size(), files.folder.string()),
        "put some in a folder called val beside one called train, or more in each class");
  }
  return {chosen(files, std::move(train)), chosen(files, std::move(test))};
}

/// The folders whose subfolders are the classes.
struct ClassFolders {
  fs::path train;
  fs::path test;  ///< empty if there is none
};

ClassFolders class_folders(const fs::path& data) {
  // A class may be called "train": then it has images, not folders.
  if (subfolders(data / "train").empty()) return {data, {}};
  return {data / "train", test_part(data)};
}

Parts list_parts(const CommonOptions& options, const ImageOptions& images, std::uint64_t seed) {
  const auto [folder, test] = class_folders(options.data);
  const ImageFiles files = halfstep::list_image_folder(folder, images.corrupt);
  Parts parts = test.empty() ? split(files, images.test_share, seed)
                             : Parts{files, halfstep::list_image_folder(test, files.classes)};
  return {limited(parts.train, options, seed), limited(parts.test, options, seed)};
}

/// A resumed run must draw the same split again, so that it does not train on test images.
std::uint64_t seed_of(const CommonOptions& options, const halfstep::CheckpointSummary& checkpoint) {
  const auto entry = checkpoint.metadata.find("seed");
  std::uint64_t seed = options.seed;
  if (entry != checkpoint.metadata.end()) CLI::detail::lexical_cast(entry->second, seed);
  return seed;
}

void check_classes(const std::vector<std::string>& classes, const CommonOptions& options,
                   const halfstep::CheckpointSummary& checkpoint) {
  const auto entry = checkpoint.metadata.find("classes");
  if (entry == checkpoint.metadata.end()) return;
  const std::string names = nlohmann::json(classes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (names == entry->second) return;
  halfstep::fail("data", fmt::format("expected the classes that {} was trained on, {}, got {} in {}",
                                     options.resume.string(), entry->second, names, options.data.string()));
}

halfstep::ImageFolder read_part(const halfstep::Device& device, const ImageFiles& files, const ImageOptions& images) {
  halfstep::ImageFolder part = halfstep::read_images(
      device, files,
      {.height = images.shape[0], .width = images.shape[1], .channels = images.shape[2], .corrupt = images.corrupt});
  for (const std::string& line : part.skipped) fmt::print(stderr, "warning: left out {}\n", line);
  return part;
}

}  // namespace

bool is_image_folder(const fs::path& folder) {
  return !subfolders(folder / "train").empty() || std::ranges::any_of(subfolders(folder), has_images);
}

bool is_class_folder(const CommonOptions& options, const fs::path& folder) {
  const auto [train, test] = class_folders(options.data);
  return std::ranges::any_of(std::array{train, test}, [&](const fs::path& part) {
    std::error_code error;
    const fs::path inside = fs::weakly_canonical(folder, error).lexically_relative(fs::weakly_canonical(part, error));
    // What is outside begins with "..", and hidden folders are no classes.
    const auto starts_with_dot = [](const fs::path& name) { return name.string().starts_with('.'); };
    return !part.empty() && !error && !inside.empty() && std::ranges::none_of(inside, starts_with_dot);
  });
}

Data read_image_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images) {
  const halfstep::CheckpointSummary checkpoint =
      options.resume.empty() ? halfstep::CheckpointSummary{} : halfstep::summarize_checkpoint(options.resume);
  const Parts parts = list_parts(options, images, seed_of(options, checkpoint));
  check_classes(parts.train.classes, options, checkpoint);
  halfstep::ImageFolder train = read_part(device, parts.train, images);
  halfstep::ImageFolder test = read_part(device, parts.test, images);
  for (const std::string& name : train.empty_classes) {
    fmt::print(stderr, "warning: no image to train on of the class {}\n", printable(name));
  }
  return {std::move(train.data), std::move(test.data), std::move(train.classes)};
}

}  // namespace samples
