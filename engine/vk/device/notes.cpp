#include "vk/device/notes.h"

#include <halfstep/process.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <exception>
#include <fstream>
#include <span>

#include "base/files.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {
namespace {

constexpr std::string_view last_line = "end of notes";  // shows that a file is complete

std::map<std::string, std::string> read_notes(const std::filesystem::path& file) {
  std::map<std::string, std::string> notes;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line == last_line) return notes;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) return {};
    notes.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return {};
}

/// Of what tells GPUs and driver builds apart that have the same UUIDs and version: RADV's UUID of a device is its
/// place on the bus, that of the driver a constant, and so is lavapipe's, whichever LLVM it was built with.
std::uint32_t build_checksum(const Capabilities& c) {
  const std::string all = fmt::format("{} {} {} {} {}", c.vendor_id, c.device_id, fmt::join(c.pipeline_cache_uuid, " "),
                                      c.name, c.driver_info);
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(all.data()), all.size()));
}

}  // namespace

std::filesystem::path device_file(std::string_view what, const Capabilities& c, const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  const std::string device = fmt::format("{:02x}{:02x}", fmt::join(c.device_uuid, ""), fmt::join(c.driver_uuid, ""));
  return folder / fmt::format("{}-{}-{:08x}-{:08x}-{:08x}", what, device, c.driver_version, build_checksum(c),
                              shaders_checksum());
}

Notes::Notes(const Capabilities& capabilities, const std::filesystem::path& folder, Stored stored)
    : file_(device_file("notes", capabilities, folder)), storable_(!file_.empty()), stored_(stored) {
  if (storable_) notes_ = read_notes(file_);
}

std::optional<std::string> Notes::find(const std::string& key) const {
  const auto found = notes_.find(key);
  return found == notes_.end() ? std::nullopt : std::optional(found->second);
}

void Notes::add(const std::string& key, const std::string& value) {
  notes_[key] = value;
  unsaved_[key] = value;
}

bool Notes::save() noexcept {
  if (!storable_ || unsaved_.empty()) return storable_;
  try {
    // Of two that read now and write then, one would lose its notes.
    const process::FolderLock lock(process::folder(file_));
    std::map<std::string, std::string> all = read_notes(file_);
    for (const auto& [key, value] : unsaved_) {
      const bool is_new = all.emplace(key, value).second;
      if (!is_new && stored_ == Stored::replaced) all[key] = value;
    }
    std::string text;
    for (const auto& [key, value] : all) text += fmt::format("{}\t{}\n", key, value);
    text += fmt::format("{}\n", last_line);
    const Bytes parts[] = {std::as_bytes(std::span(text))};
    write_atomically(file_, parts);
    notes_ = std::move(all);
    unsaved_.clear();
  } catch (const std::exception&) {
    storable_ = false;  // the disk is full or not writable
  }
  return storable_;
}

}  // namespace halfstep::vk
