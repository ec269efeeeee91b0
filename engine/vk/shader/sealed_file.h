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

/// The data of each seal in a file to which several were appended, up to the first damage.
struct SealedParts {
  std::vector<std::vector<std::byte>> parts;
  bool damaged = false;
};
SealedParts read_sealed_parts(const std::filesystem::path& file);
/// Appends sealed data to a file, which it creates if there is none; returns whether that succeeded. What a process
/// that was killed left incomplete is damage to the reader.
bool append_sealed(const std::filesystem::path& file, std::span<const std::byte> data);

/// The data of a sealed file; empty if it is missing, damaged or not a regular file.
std::vector<std::byte> read_sealed(const std::filesystem::path& file);
/// Writes a sealed file atomically. Throws std::exception if it cannot be written.
void write_sealed(const std::filesystem::path& file, std::span<const std::byte> data);

}  // namespace halfstep::vk
