#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "samples/watch/protobuf.h"

namespace samples {

/// A file of TensorBoard's events, which it finds in a folder by its name. Each event is a record with its length and
/// checksums, handed to the system as soon as it is written.
class EventFile {
 public:
  /// Makes the folder, and a new file in it. Throws Error where it cannot be made.
  explicit EventFile(const std::filesystem::path& folder);
  /// Appends an event of which `event` has all but the time: fields 2 (the step) and 4 (a graph) or 5 (a summary).
  /// Throws Error where it cannot be written.
  void add(const Message& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void record(std::string_view bytes);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// CRC-32C, as the format has it: rotated and with a constant added, so that checksums of checksums are no worse.
std::uint32_t masked_crc(std::string_view bytes);

}  // namespace samples
