#include "samples/common/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "samples/common/command_line.h"
#include "samples/common/image_data.h"

namespace samples {

using halfstep::Dataset;
using halfstep::Split;

const DataSource fashion_mnist{"Folder with a data set in IDX files, gzipped or not, or with images by class",
                               HALFSTEP_DATA,
                               {"idx"},
                               halfstep::read_idx_folder};

const DataSource cifar10{
    "Folder with CIFAR-10 in its binary layout (./samples/fetch_data.sh cifar10 downloads it), or with images by class",
    HALFSTEP_CIFAR10,
    {"batch"},
    [](const std::filesystem::path& folder, Split split, std::uint32_t) { return read_cifar10(folder, split); }};

const DataSource tweets{"Folder with a set of texts in TweetEval's layout: train_text.txt, train_labels.txt, ...",
                        "",
                        {"_text.txt", "_labels.txt", "mapping.txt"},
                        nullptr};

const DataSource text_file{"Text to train on, in UTF-8", "", {""}, nullptr};

std::vector<std::string> class_names(const CommonOptions& options, std::uint32_t classes) {
  if (options.source == &cifar10) {
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  }
  if (options.data.lexically_normal().string().find("fashion") != std::string::npos && classes == 10) {
    return {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
  }
  std::vector<std::string> names;
  for (std::uint32_t label = 0; label < classes; ++label) names.push_back(fmt::format("class {}", label));
  return names;
}

namespace {

bool is_marked(const DataSource& source, const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return std::ranges::any_of(source.marks,
                             [&](const std::string& mark) { return name.find(mark) != std::string::npos; });
}

bool has_files(const DataSource& source, const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_marked(source, entry->path())) return true;
  }
  return false;
}

Data read_files(const CommonOptions& options, std::uint32_t classes) {
  const auto read = [&](Split split) { return options.source->read(options.data, split, classes); };
  // Unpacking is most of what a program does before its first step. Where there can be no further thread, one after the
  // other.
  std::future<Dataset> test = std::async(read, Split::test);
  Data data{read(Split::train), {}, class_names(options, classes)};
  data.test = test.get();
  if (data.train.sample_shape != data.test.sample_shape) {
    halfstep::fail("data", fmt::format("expected samples of {} in both halves of {}, got {} to test on",
                                       halfstep::to_string(data.train.sample_shape), options.data.string(),
                                       halfstep::to_string(data.test.sample_shape)));
  }
  if (options.limit) {
    data.train = data.train.take(*options.limit);
    data.test = data.test.take(*options.limit);
  }
  return data;
}

}  // namespace

bool is_data_file(const CommonOptions& options, const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path inside =
      std::filesystem::canonical(file, error).lexically_relative(std::filesystem::canonical(options.data, error));
  if (error || inside.empty() || *inside.begin() == "..") return false;
  return is_marked(*options.source, file) || halfstep::has_image_name(file);
}

bool reads_image_folder(const CommonOptions& options) {
  const bool reads_images = options.source->read != nullptr;
  return reads_images && !has_files(*options.source, options.data) && is_image_folder(options.data);
}

Data read_data(const halfstep::Device& device, const CommonOptions& options, const ImageOptions& images,
               std::optional<std::uint32_t> classes) {
  const bool folder = reads_image_folder(options);
  Data data = folder ? read_image_data(device, options, images) : read_files(options, classes.value_or(10));
  if (classes && data.train.classes != *classes) {
    halfstep::fail("data", fmt::format("expected a set of {} classes, got {} in {}", *classes, data.train.classes,
                                       options.data.string()));
  }
  return data;
}

}  // namespace samples
