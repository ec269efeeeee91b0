#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vk/device/capabilities.h"

namespace halfstep::vk {

/// The file in `folder` for what is known of a device, its driver build and the library's shaders; empty where the
/// folder is.
std::filesystem::path device_file(std::string_view what, const Capabilities& capabilities,
                                  const std::filesystem::path& folder);

/// What was found out about a device, kept between processes in lines of key and value. A note once kept stays: of two
/// processes that find out at the same time, the first one's holds.
class Notes {
 public:
  /// Reads those that are kept; a damaged file counts as none.
  Notes(const Capabilities& capabilities, const std::filesystem::path& folder);

  /// Whether notes outlive the process.
  bool kept() const { return !file_.empty(); }
  std::optional<std::string> find(const std::string& key) const;
  /// Notes for this process; for the next ones too once saved. Neither has line ends, nor the key a tab.
  void add(const std::string& key, const std::string& value);
  /// Writes what was added, all or nothing. Never throws: what cannot be kept is found out again.
  void save() noexcept;

 private:
  std::filesystem::path file_;
  std::map<std::string, std::string> notes_;
  bool changed_ = false;
};

}  // namespace halfstep::vk
