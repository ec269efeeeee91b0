#include "vk/shader/sealed_file.h"

#include <halfstep/process.h>

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

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
  if (contents.size() < sizeof(Seal)) return {};
  Seal seal;
  std::memcpy(&seal, contents.data(), sizeof seal);
  const std::span<const std::byte> data = contents.subspan(sizeof seal);
  const bool intact = seal.magic == Seal{}.magic && seal.version == Seal{}.version && seal.bytes == data.size() &&
                      seal.checksum == checksum(0, data);
  if (!intact) return {};
  return {data.begin(), data.end()};
}

std::vector<std::byte> read_sealed(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();  // unlike a buffer iterator, does not throw if reading fails
  return unseal(std::as_bytes(std::span(bytes.view())));
}

void write_sealed(const std::filesystem::path& file, std::span<const std::byte> data) {
  const std::vector<std::byte> contents = seal(data);
  const Bytes parts[] = {contents};
  write_atomically(file, parts);
}

}  // namespace halfstep::vk
