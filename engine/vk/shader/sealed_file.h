#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace halfstep::vk {

/// Contents of a cache file: the data behind a header that detects damage.
std::vector<std::byte> seal(std::span<const std::byte> data);

/// The data in a file's contents; empty if they are damaged.
std::vector<std::byte> unseal(std::span<const std::byte> contents);

/// The data of a sealed file; empty if it is missing, damaged or not a regular file.
std::vector<std::byte> read_sealed(const std::filesystem::path& file);
/// Writes a sealed file atomically. Throws std::exception if it cannot be written.
void write_sealed(const std::filesystem::path& file, std::span<const std::byte> data);

}  // namespace halfstep::vk
