#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <span>

#include "data/gzip_file.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t image_extent = 32;
constexpr std::size_t pixels = image_extent * image_extent;
constexpr std::size_t image_channels = 3;

/// The start of a record: one byte per label, of which one is read.
struct Labels {
  std::size_t bytes;
  std::size_t wanted;
  std::uint32_t classes;
};

// The files store one plane per colour; a Dataset stores a pixel's colours together.
void append_pixels(std::span<const std::uint8_t> planes, std::vector<std::uint8_t>& samples) {
  for (std::size_t pixel = 0; pixel < pixels; pixel++) {
    for (std::size_t channel = 0; channel < image_channels; channel++)
      samples.push_back(planes[channel * pixels + pixel]);
  }
}

void append_file(const fs::path& path, const Labels& labels, Dataset& data) {
  data::GzipFile file(path);
  std::vector<std::uint8_t> record(labels.bytes + image_channels * pixels);
  const auto fail_at = [&](std::int64_t index, std::string_view message) {
    fail(ErrorCode::bad_file, "cifar", fmt::format("{}: image {}: {}", path.string(), index, message));
  };
  std::int64_t index = 0;
  for (std::size_t got = file.read(record); got > 0; got = file.read(record), index++) {
    if (got < record.size()) {
      fail_at(index, fmt::format("expected {} bytes, got {}; it is truncated, or no CIFAR file", record.size(), got));
    }
    const std::uint32_t label = record[labels.wanted];
    if (label >= labels.classes)
      fail_at(index, fmt::format("expected a label below {}, got {}", labels.classes, label));
    append_pixels(std::span(record).subspan(labels.bytes), data.samples);
    data.labels.push_back(label);
  }
  static_cast<void>(file.at_end());  // refuses one whose packing breaks off after a whole image
  if (index == 0)
    fail(ErrorCode::bad_file, "cifar", fmt::format("{}: expected images, got an empty file", path.string()));
}

Dataset read_files(const fs::path& folder, std::span<const std::string> files, const Labels& labels) {
  Dataset data;
  data.name = folder.string();
  data.sample_shape = {image_extent, image_extent, image_channels};
  data.classes = labels.classes;
  for (const std::string& file : files) append_file(folder / file, labels, data);
  data.count = static_cast<std::int64_t>(data.labels.size());
  return data;
}

// `folder`, or its subfolder `inner`, which is created by unpacking the archive. Throws unless it contains `file`.
fs::path folder_with(const fs::path& folder, const char* inner, const std::string& file, std::string_view set) {
  std::error_code error;
  for (const fs::path& place : {folder, folder / inner}) {
    if (fs::exists(place / file, error)) return place;
  }
  fail(ErrorCode::bad_file, "cifar", fmt::format("expected {} in {}, got no such file", file, folder.string()),
       fmt::format("./samples/fetch_data.sh {} downloads it into data/{}", set, set));
}

}  // namespace

Dataset read_cifar10(const fs::path& folder, Split split) {
  std::vector<std::string> files{"test_batch.bin"};
  if (split == Split::train) {
    files.clear();
    for (int batch = 1; batch <= 5; batch++) files.push_back(fmt::format("data_batch_{}.bin", batch));
  }
  const fs::path place = folder_with(folder, "cifar-10-batches-bin", files.front(), "cifar10");
  std::error_code error;
  // A subset may lack the last batches. A batch missing in between is an error, which reading it reports.
  while (files.size() > 1 && !fs::exists(place / files.back(), error)) files.pop_back();
  return read_files(place, files, {.bytes = 1, .wanted = 0, .classes = 10});
}

Dataset read_cifar100(const fs::path& folder, Split split, Cifar100Labels labels) {
  const std::string file = split == Split::train ? "train.bin" : "test.bin";
  const fs::path place = folder_with(folder, "cifar-100-binary", file, "cifar100");
  const bool fine = labels == Cifar100Labels::fine;
  return read_files(place, {&file, 1}, {.bytes = 2, .wanted = fine ? 1U : 0U, .classes = fine ? 100U : 20U});
}

}  // namespace halfstep
