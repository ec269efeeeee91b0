#include <halfstep/error.h>
#include <halfstep/image_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <span>
#include <system_error>
#include <thread>

#include "base/utf8.h"
#include "data/image_resizer.h"
#include "io/decode_image.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace {

/// Number of files decoded together: bounds the memory of decoded images.
constexpr std::size_t files_at_once = 64;

constexpr std::int64_t most_extent = 8192;

io::DecodedImage read(const fs::path& path, std::int64_t channels) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail(ErrorCode::bad_file, "image", "it is not an ordinary file");
  }
  std::ifstream file(path, std::ios::binary);
  const std::uintmax_t size = fs::file_size(path, error);
  if (!file || error) fail(ErrorCode::bad_file, "image", "it cannot be opened");
  std::vector<char> bytes(size);
  // Unlike an iterator of the stream's buffer, this does not throw what is no Error where the disk fails.
  if (!file.read(bytes.data(), std::ssize(bytes))) fail(ErrorCode::bad_file, "image", "it cannot be read");
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT: bytes of a file
  return io::decode_image({data, bytes.size()}, channels);
}

/// A file's image, or the reason why there is none.
struct Outcome {
  io::DecodedImage image{};
  std::string problem{};
};

Outcome decode(const data::ImageResizer& resizer, const fs::path& path, const ImageFolderOptions& options) {
  Outcome outcome;
  try {
    outcome.image = read(path, options.channels);
    resizer.check(outcome.image);
  } catch (const Error& error) {
    outcome.problem = error.what();
  } catch (const std::bad_alloc&) {
    outcome.problem = "[image] expected enough memory to decode it, got none";
  }
  return outcome;
}

/// Each file's outcome, by as many threads as asked for.
std::vector<Outcome> decode_all(const data::ImageResizer& resizer, std::span<const fs::path> files,
                                const ImageFolderOptions& options) {
  std::vector<Outcome> outcomes(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) outcomes[i] = decode(resizer, files[i], options);
  };
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, files.size()); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // As many as there can be.
  }
  work();
  others.clear();  // joins them
  return outcomes;
}

void check_options(const ImageFolderOptions& options) {
  for (const std::int64_t extent : {options.height, options.width}) {
    if (extent < 1 || extent > most_extent) {
      fail("images", fmt::format("expected a height and width of 1 to {}, got {} and {}", most_extent, options.height,
                                 options.width));
    }
  }
  if (options.channels != 1 && options.channels != 3) {
    fail("images", fmt::format("expected 1 or 3 channels, got {}", options.channels));
  }
}

[[noreturn]] void refuse(const ImageFolder& result, std::size_t files) {
  fail(ErrorCode::bad_file, "images",
       fmt::format("expected {} images, got {} that cannot be decoded, the first {}", files, result.skipped.size(),
                   result.skipped.front()),
       result.skipped.size() < files ? "CorruptFiles::skip leaves them out" : "there must be one at least that can");
}

/// Names of the classes that do not occur in `labels`.
std::vector<std::string> classes_without(const std::vector<std::uint32_t>& labels,
                                         const std::vector<std::string>& classes) {
  std::vector<bool> used(classes.size());
  for (const std::uint32_t label : labels) used[label] = true;
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!used[i]) unused.push_back(classes[i]);
  }
  return unused;
}

void check_labels(const ImageFiles& files) {
  const bool one_each = files.labels.size() == files.files.size();
  const bool below =
      std::ranges::all_of(files.labels, [&](std::uint32_t label) { return label < files.classes.size(); });
  if (!one_each || !below) {
    fail("images", fmt::format("expected a label below {} for each of {} files, got {} labels{}", files.classes.size(),
                               files.files.size(), files.labels.size(), one_each ? ", one too large" : ""));
  }
}

/// Fills `result` with the images of `files`, and one line for each that cannot be decoded.
void read_into(ImageFolder& result, const Device& device, std::span<const fs::path> files,
               std::span<const std::uint32_t> labels, const ImageFolderOptions& options) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  data::ImageResizer resizer(vk::context_of(device), extent(options.height), extent(options.width),
                             extent(options.channels));
  Dataset& data = result.data;
  data.sample_shape = {options.height, options.width, options.channels};
  for (std::size_t first = 0; first < files.size(); first += files_at_once) {
    const auto chunk = files.subspan(first, std::min(files.size() - first, files_at_once));
    std::vector<Outcome> outcomes = decode_all(resizer, chunk, options);
    std::vector<io::DecodedImage> images;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!outcomes[i].problem.empty()) {
        result.skipped.push_back(on_one_line(fmt::format("{}: {}", chunk[i].string(), outcomes[i].problem)));
        continue;
      }
      images.push_back(std::move(outcomes[i].image));
      result.files.push_back(chunk[i]);
      data.labels.push_back(labels[first + i]);
    }
    resizer.resize(images, data.samples);
  }
  data.count = static_cast<std::int64_t>(data.labels.size());
  if (!result.skipped.empty() && options.corrupt == CorruptFiles::refuse) refuse(result, files.size());
}

}  // namespace

ImageFolder read_images(const Device& device, const ImageFiles& files, const ImageFolderOptions& options) {
  check_options(options);
  check_labels(files);
  ImageFolder result;
  result.classes = files.classes;
  result.data.name = files.folder.string();
  result.data.classes = static_cast<std::uint32_t>(files.classes.size());
  read_into(result, device, files.files, files.labels, options);
  if (result.data.count == 0 && !files.files.empty()) refuse(result, files.files.size());
  result.empty_classes = classes_without(result.data.labels, result.classes);
  return result;
}

ImageFolder read_image_folder(const Device& device, const fs::path& folder, const ImageFolderOptions& options) {
  check_options(options);
  return read_images(device, list_image_folder(folder, options.corrupt), options);
}

ImageFolder read_images(const Device& device, std::span<const fs::path> files, const ImageFolderOptions& options) {
  check_options(options);
  ImageFolder result;
  result.data.name = "images";
  result.data.classes = 1;
  read_into(result, device, files, std::vector<std::uint32_t>(files.size()), options);
  return result;
}

Image read_image(const fs::path& file) {
  try {
    io::DecodedImage image = read(file, 3);
    return {image.height, image.width, std::move(image.bytes)};
  } catch (const Error& error) {
    fail(ErrorCode::bad_file, file.string(), error.what());
  }
}

}  // namespace halfstep
