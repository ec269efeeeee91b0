#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "base/utf8.h"
#include "io/safetensors.h"

namespace halfstep::io {

namespace {

void check(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors) {
  std::set<std::string_view> names{"__metadata__"};
  for (const StoredTensor& tensor : tensors) {
    if (const std::size_t valid = utf8_bytes(tensor.name); valid < tensor.name.size()) {
      fail("safetensors", fmt::format("{}: expected names in UTF-8, got another byte after '{}'", path.string(),
                                      tensor.name.substr(0, valid)));
    }
    if (!names.insert(tensor.name).second) {
      fail("safetensors", fmt::format("{}: expected every name once, got {} twice", path.string(), tensor.name));
    }
    const std::uint64_t bits = stored_bits(tensor.dtype) * static_cast<std::uint64_t>(elements(tensor.shape));
    if (stored_bits(tensor.dtype) > 0 && 8 * tensor.data.size() == bits) continue;
    fail("safetensors", fmt::format("{}: tensor {}: expected {} bits for {} {}, got {} bytes", path.string(),
                                    tensor.name, bits, tensor.dtype, to_string(tensor.shape), tensor.data.size()));
  }
}

std::string header_of(const std::vector<StoredTensor>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t end = offset + tensor.data.size();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Metadata may come from a file system or a terminal and need not be UTF-8.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Spaces after the header keep the tensors aligned to eight bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::array<std::byte, 8> little_endian(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::vector<StoredTensor> tensors, const Metadata& metadata) {
  check(path, tensors);
  // The widest types come first, so that every tensor is aligned to its element size.
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(stored_bits(b.dtype), std::string_view(a.name)) <
           std::pair(stored_bits(a.dtype), std::string_view(b.name));
  });
  const std::string header = header_of(tensors, metadata);
  const std::array<std::byte, 8> size = little_endian(header.size());
  std::vector<Bytes> parts{size, std::as_bytes(std::span(header))};
  for (const StoredTensor& tensor : tensors) parts.push_back(tensor.data);
  write_atomically(path, parts);
}

}  // namespace halfstep::io
