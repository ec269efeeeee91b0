#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace halfstep::vk {

/// A cache file's contents: data behind a header of ours, which shows damage.
std::vector<std::byte> seal(std::span<const std::byte> data);

/// The data out of a file's contents; empty where they are damaged.
std::vector<std::byte> unseal(std::span<const std::byte> contents);

/// The data of a sealed file; empty where there is none, a damaged one, or no ordinary file.
std::vector<std::byte> read_sealed(const std::filesystem::path& file);
/// Writes one, all or nothing. Throws std::exception where it cannot be written.
void write_sealed(const std::filesystem::path& file, std::span<const std::byte> data);

}  // namespace halfstep::vk
