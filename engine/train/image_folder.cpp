#include <halfstep/error.h>
#include <halfstep/image_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <span>
#include <thread>

#include "train/decode_image.h"
#include "train/image_resizer.h"

namespace halfstep {

namespace fs = std::filesystem;

namespace {

/// Files decoded together: what bounds the memory that decoded images take.
constexpr std::size_t files_at_once = 64;

constexpr std::int64_t most_extent = 8192;

struct ImageFile {
  fs::path path;
  std::uint32_t label = 0;
};

/// A file's image, or what is wrong with it.
struct Outcome {
  train::DecodedImage image{};
  std::string problem{};
};

/// What a folder holds, in the order of the names; hidden entries left out.
std::vector<fs::directory_entry> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) found.push_back(*entry);
  }
  if (error) fail("images", fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  std::ranges::sort(found);
  return found;
}

bool is_image(const fs::directory_entry& entry) {
  std::string kind = entry.path().extension().string();
  std::ranges::transform(kind, kind.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::error_code error;
  return entry.is_regular_file(error) && (kind == ".png" || kind == ".jpg" || kind == ".jpeg");
}

std::vector<ImageFile> find_images(const fs::path& folder, std::vector<std::string>& classes) {
  std::vector<ImageFile> files;
  std::error_code error;
  for (const fs::directory_entry& subfolder : entries(folder)) {
    if (!subfolder.is_directory(error)) continue;
    const std::size_t before = files.size();
    for (const fs::directory_entry& file : entries(subfolder.path())) {
      if (is_image(file)) files.push_back({file.path(), static_cast<std::uint32_t>(classes.size())});
    }
    if (files.size() == before) {
      fail("images", fmt::format("expected PNG or JPEG files in {}, got none", subfolder.path().string()));
    }
    classes.push_back(subfolder.path().filename().string());
  }
  if (files.empty()) {
    fail("images", fmt::format("expected a subfolder of images for each class in {}, got none", folder.string()));
  }
  return files;
}

Outcome decode(const fs::path& path, const ImageFolderOptions& options) {
  Outcome outcome;
  try {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("image", "it cannot be opened");
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT: bytes of a file
    outcome.image = train::decode_image({data, bytes.size()}, options.channels);
    train::check_resizable(outcome.image.height, outcome.image.width, options.height, options.width);
  } catch (const Error& error) {
    outcome.problem = error.what();
  } catch (const std::bad_alloc&) {
    outcome.problem = "[image] expected enough memory to decode it, got none";
  }
  return outcome;
}

/// Each file's outcome, by as many threads as asked for.
std::vector<Outcome> decode_all(std::span<const ImageFile> files, const ImageFolderOptions& options) {
  std::vector<Outcome> outcomes(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) outcomes[i] = decode(files[i].path, options);
  };
  std::vector<std::jthread> workers;
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();  // waits for them
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
  fail("images",
       fmt::format("expected {} images, got {} that cannot be decoded, the first {}", files, result.skipped.size(),
                   result.skipped.front()),
       "CorruptFiles::skip leaves them out");
}

/// Appends the images of `files` to `result`, and a line for each that cannot be decoded.
void read_into(ImageFolder& result, const Device& device, std::span<const ImageFile> files,
               const ImageFolderOptions& options) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  train::ImageResizer resizer(device.context(), extent(options.height), extent(options.width),
                              extent(options.channels));
  Dataset& data = result.data;
  data.sample_shape = {options.height, options.width, options.channels};
  for (std::span<const ImageFile> left = files; !left.empty();) {
    const auto chunk = left.first(std::min(left.size(), files_at_once));
    left = left.subspan(chunk.size());
    std::vector<Outcome> outcomes = decode_all(chunk, options);
    std::vector<train::DecodedImage> images;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!outcomes[i].problem.empty()) {
        result.skipped.push_back(fmt::format("{}: {}", chunk[i].path.string(), outcomes[i].problem));
        continue;
      }
      images.push_back(std::move(outcomes[i].image));
      result.files.push_back(chunk[i].path);
      data.labels.push_back(chunk[i].label);
    }
    resizer.resize(images, data.samples);
  }
  data.count = static_cast<std::int64_t>(data.labels.size());
  if (!result.skipped.empty() && options.corrupt == CorruptFiles::refuse) refuse(result, files.size());
}

}  // namespace

ImageFolder read_image_folder(const Device& device, const fs::path& folder, const ImageFolderOptions& options) {
  check_options(options);
  ImageFolder result;
  const std::vector<ImageFile> files = find_images(folder, result.classes);
  result.data.name = folder.string();
  result.data.classes = static_cast<std::uint32_t>(result.classes.size());
  read_into(result, device, files, options);
  if (result.data.count == 0) refuse(result, files.size());
  return result;
}

ImageFolder read_images(const Device& device, std::span<const fs::path> files, const ImageFolderOptions& options) {
  check_options(options);
  ImageFolder result;
  result.data.name = "images";
  result.data.classes = 1;
  std::vector<ImageFile> listed;
  for (const fs::path& path : files) listed.push_back({path, 0});
  read_into(result, device, listed, options);
  return result;
}

}  // namespace halfstep
