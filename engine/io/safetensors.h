#pragma once

#include <halfstep/process.h>
#include <halfstep/tensor.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The safetensors format: the size of a header as a little-endian 64-bit word, the header as JSON ({name: {dtype,
/// shape, data_offsets}} and a map of strings under "__metadata__"), then the tensors' bytes with no gap between them.
namespace halfstep::io {

/// One tensor of a file: row-major, without padding, little-endian.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< as written in the header: "F32", "F16", "U32", ...
  Shape shape;
  Bytes data;
};

using Metadata = std::map<std::string, std::string>;

/// Bits per element of a type named as in the header; 0 if there is no such type. Elements of fewer than 8 are packed.
std::size_t stored_bits(std::string_view dtype);

/// Writes a file atomically. Throws Error if it cannot be written, two tensors share a name, or the size of a tensor's
/// data does not match its type and shape.
void write_safetensors(const std::filesystem::path& path, std::vector<StoredTensor> tensors, const Metadata& metadata);

/// A file in memory. Moving the object does not move the tensors' data.
class SafetensorsFile {
 public:
  /// Reads and validates the whole file. Throws Error if the file violates the format. The error names the file, and
  /// the tensor if it concerns one.
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// What a file of these tensors would hold. Their data lie in `memory`.
  SafetensorsFile(std::vector<std::vector<std::byte>> memory, std::vector<StoredTensor> tensors, Metadata metadata);
  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  /// In the order of their data in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Null if there is no tensor of that name.
  const StoredTensor* find(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<StoredTensor> tensors_;
  Metadata metadata_;
};

}  // namespace halfstep::io
