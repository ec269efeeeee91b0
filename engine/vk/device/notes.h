#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vk/device/capabilities.h"

namespace halfstep::vk {

/// The file in `folder` with what is known about a device, its driver build and the library's shaders; empty if
/// `folder` is empty.
std::filesystem::path device_file(std::string_view what, const Capabilities& capabilities,
                                  const std::filesystem::path& folder);

/// Results about a device that are stored between processes, as lines of key and value.
class Notes {
 public:
  /// What happens to a stored note that is added anew. If two processes find a result at the same time, the first one's
  /// is kept, unless the second was told to find out again.
  enum class Stored : bool { kept, replaced };

  /// Reads the stored notes; a damaged file counts as empty.
  Notes(const Capabilities& capabilities, const std::filesystem::path& folder, Stored stored = Stored::kept);

  std::optional<std::string> find(const std::string& key) const;
  /// Adds a note for this process, and for later ones once saved. Key and value have no line ends, the key no tab.
  void add(const std::string& key, const std::string& value);
  /// Writes the added notes atomically, beside those that others have written meanwhile. Returns whether all are stored
  /// beyond this process; once one was not, none is. Never throws: a note that cannot be stored is determined again.
  bool save() noexcept;

 private:
  std::filesystem::path file_;
  bool storable_;
  Stored stored_;
  std::map<std::string, std::string> notes_;
  std::map<std::string, std::string> unsaved_;  ///< of these, those that were added since
};

}  // namespace halfstep::vk
