#include "vk/shader/sealed_file.h"

#include <halfstep/process.h>

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace halfstep::vk {
namespace {

/// Precedes the data.
struct Seal {
  std::uint32_t magic = 0x43505348;  // "HSPC"
  std::uint32_t version = 1;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t checksum(std::uint64_t start, std::span<const std::byte> bytes) {
  return crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

/// Takes the first seal and its data off the contents; nothing if they are damaged.
std::optional<std::span<const std::byte>> next_sealed(std::span<const std::byte>& contents) {
  if (contents.size() < sizeof(Seal)) return std::nullopt;
  Seal seal;
  std::memcpy(&seal, contents.data(), sizeof seal);
  contents = contents.subspan(sizeof seal);
  if (seal.magic != Seal{}.magic || seal.version != Seal{}.version || seal.bytes > contents.size()) return std::nullopt;
  const std::span<const std::byte> data = contents.first(seal.bytes);
  if (seal.checksum != checksum(0, data)) return std::nullopt;
  contents = contents.subspan(seal.bytes);
  return data;
}

/// Empty if there is no such regular file.
std::string contents_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();  // unlike a buffer iterator, does not throw if reading fails
  return std::move(bytes).str();
}

}  // namespace

std::vector<std::byte> seal(std::span<const std::byte> data) {
  Seal seal;
  seal.bytes = data.size();
  seal.checksum = checksum(0, data);
  std::vector<std::byte> contents(sizeof seal + data.size());
  std::memcpy(contents.data(), &seal, sizeof seal);
  std::copy(data.begin(), data.end(), contents.begin() + sizeof seal);
  return contents;
}

std::vector<std::byte> unseal(std::span<const std::byte> contents) {
  const std::optional<std::span<const std::byte>> data = next_sealed(contents);
  if (!data || !contents.empty()) return {};
  return {data->begin(), data->end()};
}

std::vector<std::byte> read_sealed(const std::filesystem::path& file) {
  const std::string contents = contents_of(file);
  return unseal(std::as_bytes(std::span(contents)));
}

SealedParts read_sealed_parts(const std::filesystem::path& file) {
  const std::string contents = contents_of(file);
  std::span<const std::byte> rest = std::as_bytes(std::span(contents));
  SealedParts result;
  while (!rest.empty()) {
    const std::optional<std::span<const std::byte>> data = next_sealed(rest);
    result.damaged = !data;
    if (!data) break;
    result.parts.emplace_back(data->begin(), data->end());
  }
  return result;
}

bool append_sealed(const std::filesystem::path& file, std::span<const std::byte> data) {
  const std::vector<std::byte> contents = seal(data);
  std::ofstream stream(file, std::ios::binary | std::ios::app);
  stream.write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
  stream.close();
  return stream.good();
}

void write_sealed(const std::filesystem::path& file, std::span<const std::byte> data) {
  const std::vector<std::byte> contents = seal(data);
  const Bytes parts[] = {contents};
  write_atomically(file, parts);
}

}  // namespace halfstep::vk
