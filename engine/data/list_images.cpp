#include <halfstep/error.h>
#include <halfstep/image_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace halfstep {

namespace fs = std::filesystem;

namespace {

/// The contents of a folder, sorted by name, without hidden entries.
std::vector<fs::directory_entry> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) found.push_back(*entry);
  }
  if (error)
    fail(ErrorCode::bad_file, "images", fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  std::ranges::sort(found);
  return found;
}

/// Dangling links count as images: reading them gives an error with their name. Pipes and devices do not count.
bool is_image(const fs::directory_entry& entry) {
  if (!has_image_name(entry.path())) return false;
  std::error_code error;
  const fs::file_type type = entry.status(error).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found || type == fs::file_type::none;
}

/// Appends the images of a class: those of `folder` and all its subfolders, each read once even if several links lead
/// to it. `known` has the canonical paths of the folders that were read.
void add_class(ImageFiles& found, const fs::path& folder, std::uint32_t label, std::set<fs::path> known) {
  std::error_code error;
  std::vector<fs::path> files;
  std::vector<fs::path> folders{folder};
  for (std::size_t i = 0; i < folders.size(); i++) {
    if (!known.insert(fs::weakly_canonical(folders[i], error)).second) continue;
    for (const fs::directory_entry& entry : entries(fs::path(folders[i]))) {
      if (entry.is_directory(error)) {
        folders.push_back(entry.path());
      } else if (is_image(entry)) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  found.labels.insert(found.labels.end(), files.size(), label);
  found.files.insert(found.files.end(), files.begin(), files.end());
}

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : entries(folder)) {
    if (entry.is_directory(error)) found.push_back(entry.path());
  }
  return found;
}

void check_any(const ImageFiles& found) {
  if (!found.files.empty()) return;
  fail(ErrorCode::bad_file, "images",
       fmt::format("expected a subfolder of PNG or JPEG files for each class in {}, got no such files",
                   found.folder.string()));
}

}  // namespace

bool has_image_name(const fs::path& file) {
  std::string kind = file.extension().string();
  std::ranges::transform(kind, kind.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return kind == ".png" || kind == ".jpg" || kind == ".jpeg";
}

ImageFiles list_image_folder(const fs::path& folder, CorruptFiles corrupt) {
  std::error_code error;
  ImageFiles found{.folder = folder};
  std::vector<fs::path> empty;
  for (const fs::path& subfolder : subfolders(folder)) {
    const std::size_t before = found.files.size();
    add_class(found, subfolder, static_cast<std::uint32_t>(found.classes.size()),
              {fs::weakly_canonical(folder, error)});
    found.classes.push_back(subfolder.filename().string());
    if (found.files.size() == before) empty.push_back(subfolder);
  }
  check_any(found);
  if (!empty.empty() && corrupt == CorruptFiles::refuse) {
    fail(ErrorCode::bad_file, "images",
         fmt::format("expected PNG or JPEG files for the class {}, got none in {}", empty.front().filename().string(),
                     empty.front().string()),
         "CorruptFiles::skip accepts classes without images");
  }
  return found;
}

ImageFiles list_image_folder(const fs::path& folder, const std::vector<std::string>& classes) {
  std::error_code error;
  ImageFiles found{.folder = folder, .classes = classes};
  for (const fs::path& subfolder : subfolders(folder)) {
    const auto name = std::ranges::find(classes, subfolder.filename().string());
    if (name == classes.end()) {
      fail(ErrorCode::bad_file, "images",
           fmt::format("expected subfolders of the {} known classes in {}, got '{}'", classes.size(), folder.string(),
                       subfolder.filename().string()));
    }
    add_class(found, subfolder, static_cast<std::uint32_t>(name - classes.begin()),
              {fs::weakly_canonical(folder, error)});
  }
  check_any(found);
  return found;
}

}  // namespace halfstep
